package validate

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// updateRules returns an error for each change of an immutable field.
func updateRules(before, after runtime.Object) field.ErrorList {
	switch after := after.(type) {
	case *appsv1.Deployment:
		if before, ok := before.(*appsv1.Deployment); ok {
			return immutable(spec.Child("selector"), before.Spec.Selector, after.Spec.Selector)
		}
	case *appsv1.ReplicaSet:
		if before, ok := before.(*appsv1.ReplicaSet); ok {
			return immutable(spec.Child("selector"), before.Spec.Selector, after.Spec.Selector)
		}
	case *appsv1.DaemonSet:
		if before, ok := before.(*appsv1.DaemonSet); ok {
			return immutable(spec.Child("selector"), before.Spec.Selector, after.Spec.Selector)
		}
	case *appsv1.StatefulSet:
		if before, ok := before.(*appsv1.StatefulSet); ok {
			return statefulSetUpdate(&before.Spec, &after.Spec)
		}
	case *batchv1.Job:
		if before, ok := before.(*batchv1.Job); ok {
			return jobUpdate(&before.Spec, &after.Spec)
		}
	case *corev1.Pod:
		if before, ok := before.(*corev1.Pod); ok {
			return podUpdate(&before.Spec, &after.Spec)
		}
	case *corev1.Service:
		if before, ok := before.(*corev1.Service); ok {
			return serviceUpdate(&before.Spec, &after.Spec)
		}
	}
	return otherUpdateRules(before, after)
}

// otherUpdateRules is updateRules for kinds other than workloads and Services.
func otherUpdateRules(before, after runtime.Object) field.ErrorList {
	switch after := after.(type) {
	case *corev1.ConfigMap:
		if before, ok := before.(*corev1.ConfigMap); ok && before.Immutable != nil && *before.Immutable {
			return unchanged("field is immutable when `immutable` is set",
				fieldChange{field.NewPath("data"), before.Data, after.Data}, fieldChange{field.NewPath("binaryData"), before.BinaryData, after.BinaryData},
				fieldChange{field.NewPath("immutable"), before.Immutable, after.Immutable})
		}
	case *corev1.Secret:
		if before, ok := before.(*corev1.Secret); ok {
			return secretUpdate(before, after)
		}
	case *corev1.PersistentVolumeClaim:
		if before, ok := before.(*corev1.PersistentVolumeClaim); ok {
			return persistentVolumeClaimUpdate(&before.Spec, &after.Spec)
		}
	case *rbacv1.RoleBinding:
		if before, ok := before.(*rbacv1.RoleBinding); ok {
			return immutable(field.NewPath("roleRef"), before.RoleRef, after.RoleRef)
		}
	case *rbacv1.ClusterRoleBinding:
		if before, ok := before.(*rbacv1.ClusterRoleBinding); ok {
			return immutable(field.NewPath("roleRef"), before.RoleRef, after.RoleRef)
		}
	case *storagev1.StorageClass:
		if before, ok := before.(*storagev1.StorageClass); ok {
			return unchanged(apivalidation.FieldImmutableErrorMsg,
				fieldChange{field.NewPath("provisioner"), before.Provisioner, after.Provisioner}, fieldChange{field.NewPath("parameters"), before.Parameters, after.Parameters})
		}
	case *schedulingv1.PriorityClass:
		if before, ok := before.(*schedulingv1.PriorityClass); ok {
			return immutable(field.NewPath("value"), before.Value, after.Value)
		}
	}
	return nil
}

func immutable(at *field.Path, before, after any) field.ErrorList {
	return apivalidation.ValidateImmutableField(after, before, at)
}

// A fieldChange is the value of a field before and after a change.
type fieldChange struct {
	at            *field.Path
	before, after any
}

// unchanged forbids changes of fields, with a message.
func unchanged(message string, parts ...fieldChange) field.ErrorList {
	var out field.ErrorList
	for _, p := range parts {
		if !equality.Semantic.DeepEqual(p.before, p.after) {
			out = append(out, field.Forbidden(p.at, message))
		}
	}
	return out
}

func statefulSetUpdate(before, after *appsv1.StatefulSetSpec) field.ErrorList {
	allowed := before.DeepCopy()
	allowed.Replicas = after.Replicas
	allowed.Template = after.Template
	allowed.UpdateStrategy = after.UpdateStrategy
	allowed.MinReadySeconds = after.MinReadySeconds
	allowed.Ordinals = after.Ordinals
	allowed.PersistentVolumeClaimRetentionPolicy = after.PersistentVolumeClaimRetentionPolicy
	allowed.RevisionHistoryLimit = after.RevisionHistoryLimit
	return unchanged("updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
		fieldChange{spec, allowed, after})
}

func jobUpdate(before, after *batchv1.JobSpec) field.ErrorList {
	out := immutable(spec.Child("selector"), before.Selector, after.Selector)
	out = append(out, immutable(spec.Child("completionMode"), before.CompletionMode, after.CompletionMode)...)
	if after.CompletionMode == nil || *after.CompletionMode != batchv1.IndexedCompletion {
		out = append(out, immutable(spec.Child("completions"), before.Completions, after.Completions)...)
	}
	old, template := before.Template.DeepCopy(), after.Template.DeepCopy()
	if before.Suspend != nil && *before.Suspend {
		// The scheduling constraints of a suspended Job may change: it has no pods yet.
		for _, t := range []*corev1.PodTemplateSpec{old, template} {
			t.Labels, t.Annotations = nil, nil
			t.Spec.NodeSelector, t.Spec.Tolerations, t.Spec.Affinity, t.Spec.SchedulingGates = nil, nil, nil, nil
			for i := range t.Spec.Containers {
				t.Spec.Containers[i].Resources = corev1.ResourceRequirements{}
			}
		}
	}
	return append(out, immutable(spec.Child("template"), old, template)...)
}

func podUpdate(before, after *corev1.PodSpec) field.ErrorList {
	allowed := before.DeepCopy()
	for _, lists := range [][2][]corev1.Container{{allowed.Containers, after.Containers}, {allowed.InitContainers, after.InitContainers}} {
		for i := range lists[0] {
			if i < len(lists[1]) {
				lists[0][i].Image = lists[1][i].Image
			}
		}
	}
	allowed.ActiveDeadlineSeconds = after.ActiveDeadlineSeconds
	allowed.TerminationGracePeriodSeconds = after.TerminationGracePeriodSeconds
	allowed.Tolerations = after.Tolerations
	allowed.SchedulingGates = after.SchedulingGates
	return unchanged("pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds`",
		fieldChange{spec, allowed, after})
}

func serviceUpdate(before, after *corev1.ServiceSpec) field.ErrorList {
	external := func(s *corev1.ServiceSpec) bool { return s.Type == corev1.ServiceTypeExternalName }
	if external(before) || external(after) || before.ClusterIP == "" || after.ClusterIP == "" {
		return nil
	}
	return immutable(spec.Child("clusterIPs").Index(0), before.ClusterIP, after.ClusterIP)
}

func secretUpdate(before, after *corev1.Secret) field.ErrorList {
	kindOf := func(s *corev1.Secret) corev1.SecretType {
		if s.Type == "" {
			return corev1.SecretTypeOpaque
		}
		return s.Type
	}
	out := immutable(field.NewPath("type"), kindOf(before), kindOf(after))
	if before.Immutable == nil || !*before.Immutable {
		return out
	}
	return append(out, unchanged("field is immutable when `immutable` is set",
		fieldChange{field.NewPath("data"), before.Data, after.Data}, fieldChange{field.NewPath("immutable"), before.Immutable, after.Immutable})...)
}

// persistentVolumeClaimUpdate allows only to increase the requested storage, and to bind the claim.
func persistentVolumeClaimUpdate(before, after *corev1.PersistentVolumeClaimSpec) field.ErrorList {
	allowed := before.DeepCopy()
	if before.VolumeName == "" {
		allowed.VolumeName = after.VolumeName
	}
	if before.StorageClassName == nil {
		allowed.StorageClassName = after.StorageClassName
	}
	allowed.VolumeAttributesClassName = after.VolumeAttributesClassName
	old, now := before.Resources.Requests[corev1.ResourceStorage], after.Resources.Requests[corev1.ResourceStorage]
	if now.Cmp(old) >= 0 {
		allowed.Resources = after.Resources
	}
	return unchanged("spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims", fieldChange{spec, allowed, after})
}
