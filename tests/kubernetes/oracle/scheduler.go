package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// lister shows plugins, which keep it, the cluster of the moment.
type lister struct{ now *cache.Snapshot }

func (l *lister) NodeInfos() fwk.NodeInfoLister           { return l.now.NodeInfos() }
func (l *lister) StorageInfos() fwk.StorageInfoLister     { return l.now.StorageInfos() }
func (l *lister) PodGroupStates() fwk.PodGroupStateLister { return l.now.PodGroupStates() }

// scheduler is the default profile of kube-scheduler, and its plugins one by one.
type scheduler struct {
	framework framework.Framework
	plugins   map[string]fwk.Plugin
	lister    *lister
	factory   *factory
}

func newScheduler(ctx context.Context) (*scheduler, error) {
	metrics.Register()
	out := &scheduler{plugins: map[string]fwk.Plugin{}, lister: &lister{cache.NewEmptySnapshot()}, factory: newFactory()}
	configuration, err := latest.Default()
	if err != nil {
		return nil, err
	}
	registry := frameworkruntime.Registry{}
	for name, make := range plugins.NewInTreeRegistry() {
		registry[name] = func(ctx context.Context, arguments runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			plugin, err := make(ctx, arguments, handle)
			out.plugins[name] = plugin
			return plugin, err
		}
	}
	options := []frameworkruntime.Option{
		frameworkruntime.WithInformerFactory(out.factory),
		frameworkruntime.WithSnapshotSharedLister(out.lister),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(out.factory.Storage().V1().CSINodes().Lister())),
	}
	if utilfeature.DefaultFeatureGate.Enabled(features.DynamicResourceAllocation) {
		claims := out.factory.Resource().V1().ResourceClaims().Informer()
		slices, err := resourceslicetracker.StartTracker(ctx, resourceslicetracker.Options{
			EnableDeviceTaintRules: false,
			SliceInformer:          out.factory.Resource().V1().ResourceSlices(),
		})
		if err != nil {
			return nil, err
		}
		options = append(options, frameworkruntime.WithSharedDRAManager(dynamicresources.NewDRAManager(ctx,
			assumecache.NewAssumeCache(klog.FromContext(ctx), claims, "ResourceClaim", "", nil), slices, out.factory)))
	}
	out.framework, err = frameworkruntime.NewFramework(ctx, registry, &configuration.Profiles[0], options...)
	return out, err
}

// names of the filters that the default profile has.
func (s *scheduler) names() []string {
	var out []string
	for _, plugin := range s.framework.ListPlugins().Filter.Enabled {
		out = append(out, plugin.Name)
	}
	return out
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func (s *scheduler) judge(asked question) ([]verdict, error) {
	given, err := readObjects(asked.Objects)
	if err != nil {
		return nil, err
	}
	for kind, example := range examples() {
		if err := s.factory.replace(example, given.others[kind]); err != nil {
			return nil, err
		}
	}
	known := map[string]bool{}
	for _, node := range given.nodes {
		known[node.Name] = true
	}
	// As kube-scheduler's cache has them: pods that have ended are not watched, and those of unknown nodes are on none.
	var placed, all []*corev1.Pod
	for _, pod := range given.pods {
		onNode := pod.Spec.NodeName != ""
		if hasEnded(pod) || (!onNode && pod.DeletionTimestamp != nil) || (onNode && !known[pod.Spec.NodeName]) {
			continue
		}
		all = append(all, pod)
		if onNode {
			placed = append(placed, pod)
		}
	}
	wanted := map[string]bool{}
	for _, name := range asked.Pods {
		wanted[name] = true
	}
	var out []verdict
	whole := cache.NewSnapshot(placed, given.nodes)
	for _, pod := range all {
		name := pod.Namespace + "/" + pod.Name
		if asked.Pods != nil && !wanted[name] {
			continue
		}
		delete(wanted, name)
		s.lister.now = whole
		if pod.Spec.NodeName != "" {
			var rest []*corev1.Pod
			for _, other := range placed {
				if other != pod {
					rest = append(rest, other)
				}
			}
			s.lister.now = cache.NewSnapshot(rest, given.nodes)
			pod = pod.DeepCopy()
			pod.Spec.NodeName = ""
		}
		refused, err := s.refusals(pod, given.nodes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, verdict{Pod: name, Refused: refused})
	}
	for name := range wanted {
		return nil, fmt.Errorf("no such pod: %s", name)
	}
	return out, nil
}

// refusals by node and plugin, those of all plugins that refuse.
func (s *scheduler) refusals(pod *corev1.Pod, nodes []*corev1.Node) (map[string]map[string]string, error) {
	ctx := context.Background()
	infos, err := s.lister.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	out := map[string]map[string]string{}
	refuse := func(node, plugin string, status *fwk.Status) {
		if out[node] == nil {
			out[node] = map[string]string{}
		}
		out[node][plugin] = strings.Join(status.Reasons(), "; ")
	}
	// Each plugin alone, so that one that refuses does not hide another.
	for _, name := range s.names() {
		plugin := s.plugins[name]
		state := framework.NewCycleState()
		var only *fwk.PreFilterResult
		if before, ok := plugin.(fwk.PreFilterPlugin); ok {
			result, status := before.PreFilter(ctx, state, pod, infos)
			if status.IsSkip() {
				continue
			}
			if !status.IsSuccess() {
				if !status.IsRejected() {
					return nil, fmt.Errorf("%s: %w", name, status.AsError())
				}
				for _, node := range nodes {
					refuse(node.Name, name, status)
				}
				continue
			}
			only = result
		}
		filter := plugin.(fwk.FilterPlugin)
		for _, node := range nodes {
			if !only.AllNodes() && !only.NodeNames.Has(node.Name) {
				refuse(node.Name, name, fwk.NewStatus(fwk.Unschedulable, "not among the nodes that are looked at"))
				continue
			}
			info, err := s.lister.NodeInfos().Get(node.Name)
			if err != nil {
				return nil, err
			}
			if status := filter.Filter(ctx, state, pod, info); !status.IsSuccess() {
				if !status.IsRejected() {
					return nil, fmt.Errorf("%s: %w", name, status.AsError())
				}
				refuse(node.Name, name, status)
			}
		}
	}
	return out, s.agree(ctx, pod, nodes, out)
}

// agree checks that the framework as a whole says the same as its plugins one by one.
func (s *scheduler) agree(ctx context.Context, pod *corev1.Pod, nodes []*corev1.Node, refused map[string]map[string]string) error {
	state := framework.NewCycleState()
	only, before, _ := s.framework.RunPreFilterPlugins(ctx, state, pod)
	if !before.IsSuccess() && !before.IsRejected() {
		return before.AsError()
	}
	for _, node := range nodes {
		fits := before.IsSuccess() && (only.AllNodes() || only.NodeNames.Has(node.Name))
		if fits {
			info, err := s.lister.NodeInfos().Get(node.Name)
			if err != nil {
				return err
			}
			fits = s.framework.RunFilterPlugins(ctx, state, pod, info).IsSuccess()
		}
		if fits != (len(refused[node.Name]) == 0) {
			return errors.New("the framework and its plugins disagree on node " + node.Name)
		}
	}
	return nil
}
