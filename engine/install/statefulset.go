package install

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shardVariable is the environment variable with the number of the shard of a pod.
const shardVariable = "SHARD"

// statefulSet runs a process for each shard, whose number is that of its pod. All begin and end at once: none waits for another.
func (o Options) statefulSet(packages []Package) *appsv1.StatefulSet {
	replicas := int32(o.Shards) //nolint:gosec // a shard more than there may be is refused before
	selector := o.selector()
	pod := o.pod(packages)
	index := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.labels['" + appsv1.PodIndexLabel + "']"}}
	pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: shardVariable, ValueFrom: index})
	return &appsv1.StatefulSet{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "StatefulSet"}, ObjectMeta: o.named(o.ServiceAccount),
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: &selector, ServiceName: o.ServiceAccount + "-shards",
			PodManagementPolicy: appsv1.ParallelPodManagement,
			UpdateStrategy:      appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType},
			Template:            pod,
		},
	}
}

// shardService is the Service that a StatefulSet has to name. Nobody connects to it.
func (o Options) shardService() *corev1.Service {
	return &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: o.named(o.ServiceAccount + "-shards"),
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: o.podLabels()},
	}
}
