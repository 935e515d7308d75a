package validate

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var spec = field.NewPath("spec")

// workloadSelector checks the selector of a workload, which must select its own pods. The
// generated rules already require that it is set.
func workloadSelector(selector *metav1.LabelSelector, template *corev1.PodTemplateSpec) field.ErrorList {
	if selector == nil {
		return nil
	}
	at := spec.Child("selector")
	out := metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, at)
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		out = append(out, field.Invalid(at, selector, "empty selector is invalid"))
	}
	if s, err := metav1.LabelSelectorAsSelector(selector); err == nil && !s.Matches(labels.Set(template.Labels)) {
		out = append(out, field.Invalid(spec.Child("template", "metadata", "labels"), template.Labels, "`selector` does not match template `labels`"))
	}
	return out
}

func deployment(o *appsv1.Deployment) field.ErrorList {
	s := &o.Spec
	out := workloadSelector(s.Selector, &s.Template)
	out = append(out, podTemplate(&s.Template, spec.Child("template"), corev1.RestartPolicyAlways)...)
	out = append(out, nonNegative(spec.Child("replicas"), s.Replicas)...)
	out = append(out, nonNegative(spec.Child("minReadySeconds"), &s.MinReadySeconds)...)
	out = append(out, nonNegative(spec.Child("revisionHistoryLimit"), s.RevisionHistoryLimit)...)
	if d := s.ProgressDeadlineSeconds; d != nil {
		out = append(out, nonNegative(spec.Child("progressDeadlineSeconds"), d)...)
		if *d <= s.MinReadySeconds {
			out = append(out, field.Invalid(spec.Child("progressDeadlineSeconds"), *d, "must be greater than minReadySeconds"))
		}
	}
	strategy := spec.Child("strategy", "rollingUpdate")
	if r := s.Strategy.RollingUpdate; r != nil {
		if s.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
			out = append(out, field.Forbidden(strategy, "may not be specified when strategy `type` is 'Recreate'"))
		}
		out = append(out, intOrPercent(strategy.Child("maxUnavailable"), r.MaxUnavailable)...)
		out = append(out, intOrPercent(strategy.Child("maxSurge"), r.MaxSurge)...)
		if isZero(r.MaxUnavailable) && isZero(r.MaxSurge) {
			out = append(out, field.Invalid(strategy.Child("maxUnavailable"), r.MaxUnavailable, "may not be 0 when `maxSurge` is 0"))
		}
	}
	return out
}

func replicaSet(o *appsv1.ReplicaSet) field.ErrorList {
	out := workloadSelector(o.Spec.Selector, &o.Spec.Template)
	out = append(out, podTemplate(&o.Spec.Template, spec.Child("template"), corev1.RestartPolicyAlways)...)
	return append(out, nonNegative(spec.Child("replicas"), o.Spec.Replicas)...)
}

func statefulSet(o *appsv1.StatefulSet) field.ErrorList {
	s := &o.Spec
	out := workloadSelector(s.Selector, &s.Template)
	// The pods also have a volume for each claim template.
	template := s.Template.DeepCopy()
	for _, c := range s.VolumeClaimTemplates {
		if !slices.ContainsFunc(template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == c.Name }) {
			template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: c.Name})
		}
	}
	out = append(out, podTemplate(template, spec.Child("template"), corev1.RestartPolicyAlways)...)
	out = append(out, nonNegative(spec.Child("replicas"), s.Replicas)...)
	out = append(out, nonNegative(spec.Child("minReadySeconds"), &s.MinReadySeconds)...)
	if s.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType && s.UpdateStrategy.RollingUpdate != nil {
		out = append(out, field.Invalid(spec.Child("updateStrategy", "rollingUpdate"), s.UpdateStrategy.RollingUpdate, "only allowed for updateStrategy 'RollingUpdate'"))
	}
	return out
}

func daemonSet(o *appsv1.DaemonSet) field.ErrorList {
	s := &o.Spec
	out := workloadSelector(s.Selector, &s.Template)
	out = append(out, podTemplate(&s.Template, spec.Child("template"), corev1.RestartPolicyAlways)...)
	out = append(out, nonNegative(spec.Child("minReadySeconds"), &s.MinReadySeconds)...)
	at := spec.Child("updateStrategy", "rollingUpdate")
	if r := s.UpdateStrategy.RollingUpdate; r != nil {
		out = append(out, intOrPercent(at.Child("maxUnavailable"), r.MaxUnavailable)...)
		out = append(out, intOrPercent(at.Child("maxSurge"), r.MaxSurge)...)
	}
	return out
}

// intOrPercent checks a number or percentage unless it is nil.
func intOrPercent(at *field.Path, n *intstr.IntOrString) field.ErrorList {
	switch {
	case n == nil:
		return nil
	case n.Type == intstr.Int:
		return nonNegative(at, &n.IntVal)
	}
	return invalid(at, n.StrVal, validation.IsValidPercent(n.StrVal))
}

// isZero reports whether a number or percentage is set to zero.
func isZero(n *intstr.IntOrString) bool {
	return n != nil && (n.Type == intstr.Int && n.IntVal == 0 || n.Type == intstr.String && strings.TrimLeft(n.StrVal, "0") == "%")
}

func job(o *batchv1.Job) field.ErrorList {
	var out field.ErrorList
	if o.Spec.ManualSelector == nil || !*o.Spec.ManualSelector {
		// The name is the value of a label of the pods.
		out = invalid(spec.Child("template", "labels"), o.Name, validation.IsValidLabelValue(o.Name))
	}
	return append(out, jobSpec(&o.Spec, spec)...)
}

func jobSpec(s *batchv1.JobSpec, at *field.Path) field.ErrorList {
	out := podTemplate(&s.Template, at.Child("template"), corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	for name, n := range map[string]*int32{
		"parallelism": s.Parallelism, "completions": s.Completions, "backoffLimit": s.BackoffLimit,
		"ttlSecondsAfterFinished": s.TTLSecondsAfterFinished, "backoffLimitPerIndex": s.BackoffLimitPerIndex, "maxFailedIndexes": s.MaxFailedIndexes,
	} {
		out = append(out, nonNegative(at.Child(name), n)...)
	}
	slices.SortStableFunc(out, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	out = append(out, nonNegative(at.Child("activeDeadlineSeconds"), s.ActiveDeadlineSeconds)...)
	if s.CompletionMode != nil && *s.CompletionMode == batchv1.IndexedCompletion && s.Completions == nil {
		out = append(out, field.Required(at.Child("completions"), "when completion mode is Indexed"))
	}
	if s.Selector != nil && (s.ManualSelector == nil || !*s.ManualSelector) && s.Selector.MatchLabels[batchv1.ControllerUidLabel] == "" {
		out = append(out, field.Invalid(at.Child("selector"), s.Selector, "`selector` not auto-generated"))
	}
	return out
}

func cronJob(o *batchv1.CronJob) field.ErrorList {
	const longest = 52 // the names of its Jobs are eleven characters longer
	s := &o.Spec
	var out field.ErrorList
	if len(o.Name) > longest {
		out = append(out, field.Invalid(field.NewPath("metadata", "name"), o.Name, "must be no more than 52 characters"))
	}
	if s.Schedule != "" {
		out = append(out, schedule(spec.Child("schedule"), s.Schedule)...)
	}
	out = append(out, nonNegative(spec.Child("startingDeadlineSeconds"), s.StartingDeadlineSeconds)...)
	out = append(out, nonNegative(spec.Child("successfulJobsHistoryLimit"), s.SuccessfulJobsHistoryLimit)...)
	out = append(out, nonNegative(spec.Child("failedJobsHistoryLimit"), s.FailedJobsHistoryLimit)...)
	return append(out, jobSpec(&s.JobTemplate.Spec, spec.Child("jobTemplate", "spec"))...)
}
