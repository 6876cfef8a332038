package main

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/apps"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/policy"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/tools/cache"
)

// factory makes informers that hold what they are told, at once and without an API server.
type factory struct {
	informers.SharedInformerFactory // of the groups that no filter asks for: none
	held                            map[reflect.Type]*informer
}

func newFactory() *factory { return &factory{held: map[reflect.Type]*informer{}} }

func (f *factory) InformerFor(object runtime.Object, _ internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	kind := reflect.TypeOf(object)
	if f.held[kind] == nil {
		f.held[kind] = &informer{indexer: cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
	}
	return f.held[kind]
}
func (f *factory) InformerName() *cache.InformerName { return nil }
func (f *factory) Apps() apps.Interface              { return apps.New(f, "", nil) }
func (f *factory) Core() core.Interface              { return core.New(f, "", nil) }
func (f *factory) Policy() policy.Interface          { return policy.New(f, "", nil) }
func (f *factory) Resource() resource.Interface      { return resource.New(f, "", nil) }
func (f *factory) Storage() storage.Interface        { return storage.New(f, "", nil) }

// replace makes the informer of a kind hold exactly these objects.
func (f *factory) replace(example runtime.Object, objects []runtime.Object) error {
	of := f.InformerFor(example, nil).(*informer)
	for _, old := range of.indexer.List() {
		if err := of.indexer.Delete(old); err != nil {
			return err
		}
		for _, handler := range of.handlers {
			handler.OnDelete(old)
		}
	}
	for _, object := range objects {
		if err := of.indexer.Add(object); err != nil {
			return err
		}
		for _, handler := range of.handlers {
			handler.OnAdd(object, false)
		}
	}
	return nil
}

type informer struct {
	cache.SharedIndexInformer // what runs and watches: none
	indexer                   cache.Indexer
	handlers                  []cache.ResourceEventHandler
}

type registration struct{}

func (registration) HasSynced() bool                     { return true }
func (registration) HasSyncedChecker() cache.DoneChecker { return nil }

func (i *informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, handler)
	return registration{}, nil
}
func (i *informer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}
func (i *informer) AddIndexers(indexers cache.Indexers) error { return i.indexer.AddIndexers(indexers) }
func (i *informer) GetIndexer() cache.Indexer                 { return i.indexer }
func (i *informer) GetStore() cache.Store                     { return i.indexer }
func (i *informer) HasSynced() bool                           { return true }
