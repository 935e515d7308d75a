package explain

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/object"
	"operetta.dev/engine/verify"
)

// containerProblem returns what Kubernetes says of the first container of a pod that does not run, or why
// no node was found, or "". Unlike the text in the status of a resource, which must not change with each
// retry, it has the retries. It leaves out what a container wrote at its end, which may hold a secret.
func containerProblem(live *unstructured.Unstructured) string {
	pod := typed(live)
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "no node was found for it: " + c.Message
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if c.Ready || c.State.Waiting == nil && c.RestartCount == 0 {
			continue
		}
		text := "container " + c.Name
		if w := c.State.Waiting; w != nil {
			text += ": " + w.Reason
			if message := verify.WaitMessage(w.Reason, w.Message); message != "" {
				text += ": " + message
			}
		}
		if last := c.LastTerminationState.Terminated; last != nil {
			text += fmt.Sprintf(", ended %d times, last with exit code %d (%s)", c.RestartCount, last.ExitCode, last.Reason)
		}
		return text
	}
	return ""
}

// references returns the claims, Secrets and ConfigMaps of its namespace that a pod cannot run without,
// each once, claims first.
func references(live *unstructured.Unstructured) []object.Ref {
	pod := typed(live)
	var out []object.Ref
	add := func(kind, name string, optional *bool) {
		ref := object.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: kind}, Namespace: pod.Namespace, Name: name}
		if name != "" && (optional == nil || !*optional) && !slices.Contains(out, ref) {
			out = append(out, ref)
		}
	}
	for _, name := range verify.MountedClaims(live) {
		add("PersistentVolumeClaim", name, nil)
	}
	for _, v := range pod.Spec.Volumes {
		volumeReferences(v, add)
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		containerReferences(c, add)
	}
	return out
}

func volumeReferences(v corev1.Volume, add func(kind, name string, optional *bool)) {
	if v.Secret != nil {
		add("Secret", v.Secret.SecretName, v.Secret.Optional)
	}
	if v.ConfigMap != nil {
		add("ConfigMap", v.ConfigMap.Name, v.ConfigMap.Optional)
	}
	if v.Projected == nil {
		return
	}
	for _, s := range v.Projected.Sources {
		if s.Secret != nil {
			add("Secret", s.Secret.Name, s.Secret.Optional)
		}
		if s.ConfigMap != nil {
			add("ConfigMap", s.ConfigMap.Name, s.ConfigMap.Optional)
		}
	}
}

func containerReferences(c corev1.Container, add func(kind, name string, optional *bool)) {
	for _, from := range c.EnvFrom {
		if from.SecretRef != nil {
			add("Secret", from.SecretRef.Name, from.SecretRef.Optional)
		}
		if from.ConfigMapRef != nil {
			add("ConfigMap", from.ConfigMapRef.Name, from.ConfigMapRef.Optional)
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		if s := e.ValueFrom.SecretKeyRef; s != nil {
			add("Secret", s.Name, s.Optional)
		}
		if m := e.ValueFrom.ConfigMapKeyRef; m != nil {
			add("ConfigMap", m.Name, m.Optional)
		}
	}
}

// typed returns a pod as its Go type. An API server has checked its form.
func typed(live *unstructured.Unstructured) corev1.Pod {
	var pod corev1.Pod
	if runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &pod) != nil {
		return corev1.Pod{}
	}
	return pod
}
