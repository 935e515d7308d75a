package validate

import (
	"cmp"

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

// updateRules are the rules for changes, each for the objects of one type. A type that has no rule
// here has no immutable fields.
var updateRules = []func(before, after runtime.Object) field.ErrorList{
	immutable(spec.Child("selector"), func(o *appsv1.Deployment) any { return o.Spec.Selector }),
	immutable(spec.Child("selector"), func(o *appsv1.ReplicaSet) any { return o.Spec.Selector }),
	immutable(spec.Child("selector"), func(o *appsv1.DaemonSet) any { return o.Spec.Selector }),
	immutable(field.NewPath("roleRef"), func(o *rbacv1.RoleBinding) any { return o.RoleRef }),
	immutable(field.NewPath("roleRef"), func(o *rbacv1.ClusterRoleBinding) any { return o.RoleRef }),
	immutable(field.NewPath("value"), func(o *schedulingv1.PriorityClass) any { return o.Value }),
	onUpdate(statefulSetUpdate),
	onUpdate(jobUpdate),
	onUpdate(podUpdate),
	onUpdate(serviceUpdate),
	onUpdate(configMapUpdate),
	onUpdate(secretUpdate),
	onUpdate(persistentVolumeClaimUpdate),
	onUpdate(storageClassUpdate),
}

// onUpdate returns a rule for the changes of one type. It accepts objects of any other type.
func onUpdate[T runtime.Object](rule func(before, after T) field.ErrorList) func(before, after runtime.Object) field.ErrorList {
	return func(before, after runtime.Object) field.ErrorList {
		b, is := before.(T)
		a, stays := after.(T)
		if !is || !stays {
			return nil
		}
		return rule(b, a)
	}
}

// immutable returns a rule that forbids any change of a field.
func immutable[T runtime.Object](at *field.Path, value func(T) any) func(before, after runtime.Object) field.ErrorList {
	return onUpdate(func(before, after T) field.ErrorList {
		return apivalidation.ValidateImmutableField(value(after), value(before), at)
	})
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

func statefulSetUpdate(from, to *appsv1.StatefulSet) field.ErrorList {
	allowed, after := from.Spec.DeepCopy(), &to.Spec
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

func jobUpdate(from, to *batchv1.Job) field.ErrorList {
	before, after := &from.Spec, &to.Spec
	out := apivalidation.ValidateImmutableField(after.Selector, before.Selector, spec.Child("selector"))
	out = append(out, apivalidation.ValidateImmutableField(after.CompletionMode, before.CompletionMode, spec.Child("completionMode"))...)
	if after.CompletionMode == nil || *after.CompletionMode != batchv1.IndexedCompletion {
		out = append(out, apivalidation.ValidateImmutableField(after.Completions, before.Completions, spec.Child("completions"))...)
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
	return append(out, apivalidation.ValidateImmutableField(template, old, spec.Child("template"))...)
}

func podUpdate(from, to *corev1.Pod) field.ErrorList {
	allowed, after := from.Spec.DeepCopy(), &to.Spec
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

func serviceUpdate(before, after *corev1.Service) field.ErrorList {
	assigned := func(s corev1.ServiceSpec) bool { return s.Type != corev1.ServiceTypeExternalName && s.ClusterIP != "" }
	if !assigned(before.Spec) || !assigned(after.Spec) {
		return nil
	}
	return apivalidation.ValidateImmutableField(after.Spec.ClusterIP, before.Spec.ClusterIP, spec.Child("clusterIPs").Index(0))
}

// immutableContent is the API server's message about a ConfigMap or Secret that is immutable.
const immutableContent = "field is immutable when `immutable` is set"

func configMapUpdate(before, after *corev1.ConfigMap) field.ErrorList {
	if before.Immutable == nil || !*before.Immutable {
		return nil
	}
	return unchanged(immutableContent,
		fieldChange{field.NewPath("data"), before.Data, after.Data}, fieldChange{field.NewPath("binaryData"), before.BinaryData, after.BinaryData},
		fieldChange{field.NewPath("immutable"), before.Immutable, after.Immutable})
}

func secretUpdate(before, after *corev1.Secret) field.ErrorList {
	out := apivalidation.ValidateImmutableField(cmp.Or(after.Type, corev1.SecretTypeOpaque), cmp.Or(before.Type, corev1.SecretTypeOpaque), field.NewPath("type"))
	if before.Immutable == nil || !*before.Immutable {
		return out
	}
	return append(out, unchanged(immutableContent,
		fieldChange{field.NewPath("data"), before.Data, after.Data}, fieldChange{field.NewPath("immutable"), before.Immutable, after.Immutable})...)
}

func storageClassUpdate(before, after *storagev1.StorageClass) field.ErrorList {
	return unchanged(apivalidation.FieldImmutableErrorMsg,
		fieldChange{field.NewPath("provisioner"), before.Provisioner, after.Provisioner}, fieldChange{field.NewPath("parameters"), before.Parameters, after.Parameters})
}

// persistentVolumeClaimUpdate allows only to increase the requested storage, and to bind the claim.
func persistentVolumeClaimUpdate(from, to *corev1.PersistentVolumeClaim) field.ErrorList {
	before, after, allowed := &from.Spec, &to.Spec, from.Spec.DeepCopy()
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
