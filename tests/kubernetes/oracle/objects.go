package main

import (
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	defaults "k8s.io/kubernetes/pkg/apis/core/v1"
)

// objects of a List, those that filters look at.
type objects struct {
	nodes  []*corev1.Node
	pods   []*corev1.Pod
	others map[string][]runtime.Object // by kind
}

// examples of the kinds that informers hold, by kind.
func examples() map[string]runtime.Object {
	return map[string]runtime.Object{
		"Namespace":             &corev1.Namespace{},
		"PersistentVolume":      &corev1.PersistentVolume{},
		"PersistentVolumeClaim": &corev1.PersistentVolumeClaim{},
		"StorageClass":          &storagev1.StorageClass{},
		"CSINode":               &storagev1.CSINode{},
		"CSIDriver":             &storagev1.CSIDriver{},
	}
}

func readObjects(text json.RawMessage) (objects, error) {
	out := objects{others: map[string][]runtime.Object{}}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return out, err
	}
	spaces := map[string]bool{}
	for number, item := range list.Items {
		var kind metav1.TypeMeta
		if err := json.Unmarshal(item, &kind); err != nil {
			return out, err
		}
		var object runtime.Object
		switch kind.Kind {
		case "Node":
			object = &corev1.Node{}
		case "Pod":
			object = &corev1.Pod{}
		default:
			if object = examples()[kind.Kind]; object == nil {
				continue // of no concern to filters
			}
		}
		if err := json.Unmarshal(item, object); err != nil {
			return out, fmt.Errorf("item %d, %s: %w", number, kind.Kind, err)
		}
		switch known := object.(type) {
		case *corev1.Node:
			defaults.SetObjectDefaults_Node(known)
			out.nodes = append(out.nodes, known)
		case *corev1.Pod:
			defaults.SetObjectDefaults_Pod(known)
			out.pods = append(out.pods, known)
		case metav1.Object:
			// Caches take what is newer than what they had.
			known.SetResourceVersion(strconv.Itoa(number + 1))
			if kind.Kind == "Namespace" {
				spaces[known.GetName()] = true
				if known.GetLabels() == nil {
					known.SetLabels(map[string]string{})
				}
				known.GetLabels()[corev1.LabelMetadataName] = known.GetName()
			}
			out.others[kind.Kind] = append(out.others[kind.Kind], object)
		}
	}
	// The namespaces of pods exist, whether the List has them or not.
	for _, pod := range out.pods {
		if spaces[pod.Namespace] {
			continue
		}
		spaces[pod.Namespace] = true
		out.others["Namespace"] = append(out.others["Namespace"], &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: pod.Namespace, Labels: map[string]string{corev1.LabelMetadataName: pod.Namespace}}})
	}
	return out, nil
}
