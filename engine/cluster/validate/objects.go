package validate

import (
	"encoding/json"
	"maps"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// kindRules are the rules that are not generated, each for the objects of one type.
var kindRules = []func(runtime.Object) field.ErrorList{
	onWrite(deployment), onWrite(replicaSet), onWrite(statefulSet), onWrite(daemonSet), onWrite(job), onWrite(cronJob),
	onWrite(func(o *corev1.Pod) field.ErrorList { return podSpec(&o.Spec, spec) }),
	onWrite(service), onWrite(ingress), onWrite(networkPolicy),
	onWrite(configMap), onWrite(secret),
	onWrite(persistentVolumeClaim), onWrite(resourceQuota), onWrite(disruptionBudget),
	onWrite(func(o *rbacv1.Role) field.ErrorList { return policyRules(o.Rules, true) }),
	onWrite(func(o *rbacv1.ClusterRole) field.ErrorList { return policyRules(o.Rules, false) }),
	onWrite(func(o *rbacv1.RoleBinding) field.ErrorList {
		return roleBinding(o.RoleRef, o.Subjects, o.Namespace, "Role", "ClusterRole")
	}),
	onWrite(func(o *rbacv1.ClusterRoleBinding) field.ErrorList {
		return roleBinding(o.RoleRef, o.Subjects, "", "ClusterRole")
	}),
	onWrite(func(o *autoscalingv1.HorizontalPodAutoscaler) field.ErrorList {
		return autoscaler(o.Spec.MinReplicas, o.Spec.MaxReplicas)
	}),
	onWrite(func(o *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
		return autoscaler(o.Spec.MinReplicas, o.Spec.MaxReplicas)
	}),
}

// onWrite returns a rule for the objects of one type. It accepts objects of any other type.
func onWrite[T runtime.Object](rule func(T) field.ErrorList) func(runtime.Object) field.ErrorList {
	return func(o runtime.Object) field.ErrorList {
		if of, is := o.(T); is {
			return rule(of)
		}
		return nil
	}
}

func configMap(o *corev1.ConfigMap) field.ErrorList {
	out := configKeys(field.NewPath("data"), o.Data)
	out = append(out, configKeys(field.NewPath("binaryData"), o.BinaryData)...)
	total := 0
	for _, k := range sortedKeys(o.Data) {
		total += len(o.Data[k])
		if _, twice := o.BinaryData[k]; twice {
			out = append(out, field.Invalid(field.NewPath("data").Key(k), k, "duplicate of key present in binaryData"))
		}
	}
	for _, v := range o.BinaryData {
		total += len(v)
	}
	return append(out, dataSize(field.NewPath(""), total)...)
}

// secretKeys are the required keys of the types of Secrets.
var secretKeys = map[corev1.SecretType][]string{
	corev1.SecretTypeTLS:              {corev1.TLSCertKey, corev1.TLSPrivateKeyKey},
	corev1.SecretTypeDockerConfigJson: {corev1.DockerConfigJsonKey},
	corev1.SecretTypeDockercfg:        {corev1.DockerConfigKey},
	corev1.SecretTypeSSHAuth:          {corev1.SSHAuthPrivateKey},
}

func secret(o *corev1.Secret) field.ErrorList {
	at := field.NewPath("data")
	data := map[string][]byte{}
	maps.Copy(data, o.Data)
	for k, v := range o.StringData {
		data[k] = []byte(v)
	}
	out := configKeys(at, data)
	total := 0
	for _, v := range data {
		total += len(v)
	}
	out = append(out, dataSize(at, total)...)
	for _, k := range secretKeys[o.Type] {
		if _, has := data[k]; !has {
			out = append(out, field.Required(at.Key(k), ""))
		}
	}
	switch o.Type {
	case corev1.SecretTypeServiceAccountToken:
		if o.Annotations[corev1.ServiceAccountNameKey] == "" {
			out = append(out, field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), ""))
		}
	case corev1.SecretTypeBasicAuth:
		_, user := data[corev1.BasicAuthUsernameKey]
		_, password := data[corev1.BasicAuthPasswordKey]
		if !user && !password {
			out = append(out, field.Required(at.Key(corev1.BasicAuthUsernameKey), ""), field.Required(at.Key(corev1.BasicAuthPasswordKey), ""))
		}
	case corev1.SecretTypeDockerConfigJson:
		if text, has := data[corev1.DockerConfigJsonKey]; has && !json.Valid(text) {
			out = append(out, field.Invalid(at.Key(corev1.DockerConfigJsonKey), "<secret contents redacted>", "it is not JSON"))
		}
	default: // other types have no required content
	}
	return out
}

func persistentVolumeClaim(o *corev1.PersistentVolumeClaim) field.ErrorList {
	s := &o.Spec
	var out field.ErrorList
	if len(s.AccessModes) == 0 {
		out = append(out, field.Required(spec.Child("accessModes"), "at least 1 access mode is required"))
	}
	at := spec.Child("resources", "requests").Key("storage")
	switch storage, has := s.Resources.Requests[corev1.ResourceStorage]; {
	case !has:
		out = append(out, field.Required(spec.Child("resources").Key("storage"), ""))
	case storage.Sign() <= 0:
		out = append(out, field.Invalid(at, storage.String(), "must be greater than zero"))
	}
	return append(out, selector(s.Selector, spec.Child("selector"))...)
}

func resourceQuota(o *corev1.ResourceQuota) field.ErrorList {
	hard := o.Spec.Hard
	var out field.ErrorList
	for _, name := range sortedKeys(hard) {
		if limit := hard[name]; limit.Sign() < 0 {
			out = append(out, field.Invalid(spec.Child("hard").Key(string(name)), limit.String(), "must be greater than or equal to 0"))
		}
	}
	return out
}

// policyRules checks the rules of a role. The generated rules already require verbs.
func policyRules(list []rbacv1.PolicyRule, namespaced bool) field.ErrorList {
	var out field.ErrorList
	for i, r := range list {
		at := field.NewPath("rules").Index(i)
		if len(r.NonResourceURLs) > 0 {
			if namespaced {
				out = append(out, field.Invalid(at.Child("nonResourceURLs"), r.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs"))
			}
			if len(r.APIGroups)+len(r.Resources)+len(r.ResourceNames) > 0 {
				out = append(out, field.Invalid(at.Child("nonResourceURLs"), r.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs"))
			}
			continue
		}
		if len(r.APIGroups) == 0 {
			out = append(out, field.Required(at.Child("apiGroups"), "resource rules must supply at least one api group"))
		}
		if len(r.Resources) == 0 {
			out = append(out, field.Required(at.Child("resources"), "resource rules must supply at least one resource"))
		}
	}
	return out
}

// roleBinding checks the roleRef and the subjects of a binding. namespace is "" for a
// ClusterRoleBinding.
func roleBinding(to rbacv1.RoleRef, subjects []rbacv1.Subject, namespace string, kinds ...string) field.ErrorList {
	ref := field.NewPath("roleRef")
	out := supported(ref.Child("apiGroup"), to.APIGroup, rbacv1.GroupName)
	out = append(out, supported(ref.Child("kind"), to.Kind, kinds...)...)
	out = append(out, invalid(ref.Child("name"), to.Name, pathSegment(to.Name, false))...)
	for i, s := range subjects {
		at := field.NewPath("subjects").Index(i)
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			if s.Namespace == "" && namespace == "" {
				out = append(out, field.Required(at.Child("namespace"), ""))
			}
			out = append(out, supported(at.Child("apiGroup"), s.APIGroup, "")...)
		case rbacv1.UserKind, rbacv1.GroupKind:
			out = append(out, supported(at.Child("apiGroup"), s.APIGroup, rbacv1.GroupName)...)
		default:
			out = append(out, supported(at.Child("kind"), s.Kind, rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind)...)
		}
	}
	return out
}

func disruptionBudget(o *policyv1.PodDisruptionBudget) field.ErrorList {
	s := &o.Spec
	out := intOrPercent(spec.Child("minAvailable"), s.MinAvailable)
	out = append(out, intOrPercent(spec.Child("maxUnavailable"), s.MaxUnavailable)...)
	if s.MinAvailable != nil && s.MaxUnavailable != nil {
		out = append(out, field.Invalid(spec, "", "minAvailable and maxUnavailable cannot be both set"))
	}
	return append(out, selector(s.Selector, spec.Child("selector"))...)
}

func autoscaler(least *int32, most int32) field.ErrorList {
	var out field.ErrorList
	if least != nil && *least < 1 {
		out = append(out, field.Invalid(spec.Child("minReplicas"), *least, "must be greater than or equal to 1"))
	}
	if most < 1 {
		out = append(out, field.Invalid(spec.Child("maxReplicas"), most, "must be greater than 0"))
	}
	if least != nil && most < *least {
		out = append(out, field.Invalid(spec.Child("maxReplicas"), most, "must be greater than or equal to `minReplicas`"))
	}
	return out
}
