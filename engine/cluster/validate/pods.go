package validate

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// podTemplate checks a template whose pods may only have the given restart policies. The default
// policy is Always.
func podTemplate(t *corev1.PodTemplateSpec, at *field.Path, policies ...corev1.RestartPolicy) field.ErrorList {
	out := metavalidation.ValidateLabels(t.Labels, at.Child("metadata", "labels"))
	out = append(out, apivalidation.ValidateAnnotations(t.Annotations, at.Child("metadata", "annotations"))...)
	policy := t.Spec.RestartPolicy
	if policy == "" {
		policy = corev1.RestartPolicyAlways
	}
	if !slices.Contains(policies, policy) {
		out = append(out, field.NotSupported(at.Child("spec", "restartPolicy"), policy, policies))
	}
	return append(out, podSpec(&t.Spec, at.Child("spec"))...)
}

// podSpec checks the rules for all pods.
func podSpec(s *corev1.PodSpec, at *field.Path) field.ErrorList {
	out := volumes(s.Volumes, at.Child("volumes"))
	declared := sets.New[string]()
	for _, v := range s.Volumes {
		declared.Insert(v.Name)
	}
	names := sets.New[string]()
	for i := range s.InitContainers {
		out = append(out, container(&s.InitContainers[i], declared, names, at.Child("initContainers").Index(i))...)
	}
	for i := range s.Containers {
		out = append(out, container(&s.Containers[i], declared, names, at.Child("containers").Index(i))...)
	}
	out = append(out, nonNegative(at.Child("terminationGracePeriodSeconds"), s.TerminationGracePeriodSeconds)...)
	if n := s.ActiveDeadlineSeconds; n != nil && *n < 1 {
		out = append(out, field.Invalid(at.Child("activeDeadlineSeconds"), *n, "must be greater than zero"))
	}
	out = append(out, metavalidation.ValidateLabels(s.NodeSelector, at.Child("nodeSelector"))...)
	out = append(out, optionalName(at.Child("serviceAccountName"), s.ServiceAccountName, validation.IsDNS1123Subdomain)...)
	out = append(out, optionalName(at.Child("priorityClassName"), s.PriorityClassName, validation.IsDNS1123Subdomain)...)
	out = append(out, dnsLabel(at.Child("hostname"), s.Hostname)...)
	out = append(out, dnsLabel(at.Child("subdomain"), s.Subdomain)...)
	if c := s.SecurityContext; c != nil {
		out = append(out, userID(at.Child("securityContext", "runAsUser"), c.RunAsUser)...)
	}
	return append(out, scheduling(s, at)...)
}

// scheduling checks the scheduling constraints of a pod.
func scheduling(s *corev1.PodSpec, at *field.Path) field.ErrorList {
	var out field.ErrorList
	for i, t := range s.Tolerations {
		out = append(out, toleration(t, at.Child("tolerations").Index(i))...)
	}
	for i, c := range s.TopologySpreadConstraints {
		if c.MaxSkew < 1 {
			out = append(out, field.Invalid(at.Child("topologySpreadConstraints").Index(i).Child("maxSkew"), c.MaxSkew, "must be greater than zero"))
		}
	}
	if s.Affinity == nil {
		return out
	}
	check := func(kind string, i int, n int32) {
		here := at.Child("affinity", kind, "preferredDuringSchedulingIgnoredDuringExecution").Index(i).Child("weight")
		out = append(out, invalid(here, n, validation.IsInRange(int(n), 1, maxWeight))...)
	}
	for i, t := range ptr.Deref(s.Affinity.NodeAffinity, corev1.NodeAffinity{}).PreferredDuringSchedulingIgnoredDuringExecution {
		check("nodeAffinity", i, t.Weight)
	}
	for i, t := range ptr.Deref(s.Affinity.PodAffinity, corev1.PodAffinity{}).PreferredDuringSchedulingIgnoredDuringExecution {
		check("podAffinity", i, t.Weight)
	}
	for i, t := range ptr.Deref(s.Affinity.PodAntiAffinity, corev1.PodAntiAffinity{}).PreferredDuringSchedulingIgnoredDuringExecution {
		check("podAntiAffinity", i, t.Weight)
	}
	return out
}

// maxWeight is the maximum weight of a preferred scheduling term.
const maxWeight = 100

func userID(at *field.Path, id *int64) field.ErrorList {
	if id == nil {
		return nil
	}
	return invalid(at, *id, validation.IsValidUserID(*id))
}

func toleration(t corev1.Toleration, at *field.Path) field.ErrorList {
	var out field.ErrorList
	if t.Key != "" {
		out = metavalidation.ValidateLabelName(t.Key, at.Child("key"))
	} else if t.Operator != corev1.TolerationOpExists {
		out = append(out, field.Invalid(at.Child("operator"), t.Operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
	}
	if t.Operator == corev1.TolerationOpExists && t.Value != "" {
		out = append(out, field.Invalid(at.Child("operator"), t.Operator, "value must be empty when `operator` is 'Exists'"))
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		out = append(out, field.Invalid(at.Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
	}
	return out
}

// volumes checks the volumes of a pod.
func volumes(list []corev1.Volume, at *field.Path) field.ErrorList {
	var out field.ErrorList
	names := sets.New[string]()
	for i := range list {
		v, here := &list[i], at.Index(i)
		out = append(out, dnsLabel(here.Child("name"), v.Name)...)
		if names.Has(v.Name) {
			out = append(out, field.Duplicate(here.Child("name"), v.Name))
		}
		names.Insert(v.Name)
		if n := countSet(v.VolumeSource); n > 1 {
			out = append(out, field.Forbidden(here, "may not specify more than 1 volume type"))
		}
		if v.ConfigMap != nil {
			out = append(out, requiredName(here.Child("configMap", "name"), v.ConfigMap.Name)...)
			out = append(out, keyToPaths(here.Child("configMap", "items"), v.ConfigMap.Items)...)
			out = append(out, fileMode(here.Child("configMap", "defaultMode"), v.ConfigMap.DefaultMode)...)
		}
		if v.Secret != nil {
			out = append(out, requiredName(here.Child("secret", "secretName"), v.Secret.SecretName)...)
			out = append(out, keyToPaths(here.Child("secret", "items"), v.Secret.Items)...)
			out = append(out, fileMode(here.Child("secret", "defaultMode"), v.Secret.DefaultMode)...)
		}
	}
	return out
}

// countSet returns the number of pointers that are set in a struct: a union allows one.
func countSet(union any) int {
	n := 0
	for f, v := range reflect.ValueOf(union).Fields() {
		if f.Type.Kind() == reflect.Pointer && !v.IsNil() {
			n++
		}
	}
	return n
}

// requiredName checks the name of a referenced object, which must not be empty.
func requiredName(at *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	return nil
}

// keyToPaths checks the paths and modes of the keys of a ConfigMap or Secret volume.
func keyToPaths(at *field.Path, items []corev1.KeyToPath) field.ErrorList {
	var out field.ErrorList
	for i, item := range items {
		here := at.Index(i).Child("path")
		if strings.HasPrefix(item.Path, "/") {
			out = append(out, field.Invalid(here, item.Path, "must be a relative path"))
		}
		if slices.Contains(strings.Split(item.Path, "/"), "..") {
			out = append(out, field.Invalid(here, item.Path, "must not contain '..'"))
		}
		out = append(out, fileMode(at.Index(i).Child("mode"), item.Mode)...)
	}
	return out
}

func fileMode(at *field.Path, bits *int32) field.ErrorList {
	const all = 0o777
	if bits == nil || *bits >= 0 && *bits <= all {
		return nil
	}
	return field.ErrorList{field.Invalid(at, *bits, "must be a number between 0 and 0777 (octal), both inclusive")}
}

// container checks one container of a pod. names are the names of the previous containers.
func container(c *corev1.Container, declared, names sets.Set[string], at *field.Path) field.ErrorList {
	out := dnsLabel(at.Child("name"), c.Name)
	if c.Name != "" && names.Has(c.Name) {
		out = append(out, field.Duplicate(at.Child("name"), c.Name))
	}
	names.Insert(c.Name)
	switch {
	case c.Image == "":
		out = append(out, field.Required(at.Child("image"), ""))
	case c.Image != strings.TrimSpace(c.Image):
		out = append(out, field.Invalid(at.Child("image"), c.Image, "must not have leading or trailing whitespace"))
	}
	out = append(out, containerPorts(c.Ports, at.Child("ports"))...)
	for i := range c.Env {
		out = append(out, envVar(&c.Env[i], at.Child("env").Index(i))...)
	}
	for i, from := range c.EnvFrom {
		if countSet(from) != 1 {
			out = append(out, field.Invalid(at.Child("envFrom").Index(i), "", "must specify one of: `configMapRef` or `secretRef`"))
		}
	}
	if s := c.SecurityContext; s != nil {
		out = append(out, userID(at.Child("securityContext", "runAsUser"), s.RunAsUser)...)
	}
	if l := c.Lifecycle; l != nil {
		out = append(out, handler(l.PostStart, at.Child("lifecycle", "postStart"))...)
		out = append(out, handler(l.PreStop, at.Child("lifecycle", "preStop"))...)
	}
	out = append(out, volumeMounts(c.VolumeMounts, declared, at.Child("volumeMounts"))...)
	out = append(out, resources(&c.Resources, at.Child("resources"))...)
	out = append(out, probe(c.LivenessProbe, at.Child("livenessProbe"), true)...)
	out = append(out, probe(c.StartupProbe, at.Child("startupProbe"), true)...)
	return append(out, probe(c.ReadinessProbe, at.Child("readinessProbe"), false)...)
}

func containerPorts(list []corev1.ContainerPort, at *field.Path) field.ErrorList {
	var out field.ErrorList
	names := sets.New[string]()
	for i, p := range list {
		here := at.Index(i)
		out = append(out, optionalName(here.Child("name"), p.Name, validation.IsValidPortName)...)
		if p.Name != "" && names.Has(p.Name) {
			out = append(out, field.Duplicate(here.Child("name"), p.Name))
		}
		names.Insert(p.Name)
		out = append(out, port(here.Child("containerPort"), p.ContainerPort)...)
		if p.HostPort != 0 {
			out = append(out, port(here.Child("hostPort"), p.HostPort)...)
		}
	}
	return out
}

// envVar checks one environment variable.
func envVar(e *corev1.EnvVar, at *field.Path) field.ErrorList {
	out := optionalName(at.Child("name"), e.Name, validation.IsRelaxedEnvVarName)
	if e.ValueFrom == nil {
		return out
	}
	from := at.Child("valueFrom")
	switch n := countSet(*e.ValueFrom); {
	case n == 0:
		out = append(out, field.Invalid(from, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	case n > 1:
		out = append(out, field.Invalid(from, "", "may not have more than one field specified at a time"))
	case e.Value != "":
		out = append(out, field.Invalid(from, "", "may not be specified when `value` is not empty"))
	}
	if s := e.ValueFrom.SecretKeyRef; s != nil {
		out = append(out, requiredName(from.Child("secretKeyRef", "name"), s.Name)...)
	}
	if c := e.ValueFrom.ConfigMapKeyRef; c != nil {
		out = append(out, requiredName(from.Child("configMapKeyRef", "name"), c.Name)...)
	}
	return out
}

func volumeMounts(list []corev1.VolumeMount, declared sets.Set[string], at *field.Path) field.ErrorList {
	var out field.ErrorList
	taken := sets.New[string]()
	for i, m := range list {
		here := at.Index(i)
		if m.Name != "" && !declared.Has(m.Name) {
			out = append(out, field.NotFound(here.Child("name"), m.Name))
		}
		if m.MountPath != "" && taken.Has(m.MountPath) {
			out = append(out, field.Invalid(here.Child("mountPath"), m.MountPath, "must be unique"))
		}
		taken.Insert(m.MountPath)
		if m.SubPath != "" && m.SubPathExpr != "" {
			out = append(out, field.Invalid(here.Child("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive"))
		}
	}
	return out
}

// resources checks the resource requirements of a container.
func resources(r *corev1.ResourceRequirements, at *field.Path) field.ErrorList {
	out := quantities(r.Limits, at.Child("limits"))
	out = append(out, quantities(r.Requests, at.Child("requests"))...)
	for _, name := range sortedKeys(r.Requests) {
		request := r.Requests[name]
		if limit, limited := r.Limits[name]; limited && request.Cmp(limit) > 0 {
			out = append(out, field.Invalid(at.Child("requests"), request.String(), "must be less than or equal to "+string(name)+" limit of "+limit.String()))
		}
	}
	return out
}

// quantities checks the names and quantities of a resource list.
func quantities(of corev1.ResourceList, at *field.Path) field.ErrorList {
	var out field.ErrorList
	for _, name := range sortedKeys(of) {
		here := at.Key(string(name))
		if amount := of[name]; amount.Sign() < 0 {
			out = append(out, field.Invalid(here, amount.String(), "must be greater than or equal to 0"))
		}
		switch {
		case strings.Contains(string(name), "/"):
			out = append(out, invalid(here, name, validation.IsQualifiedName(string(name)))...)
		case !slices.Contains([]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}, name) && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			out = append(out, field.Invalid(here, name, "must be a standard resource for containers"))
		}
	}
	return out
}

// handler checks a lifecycle handler, if there is one.
func handler(h *corev1.LifecycleHandler, at *field.Path) field.ErrorList {
	if h == nil {
		return nil
	}
	return exactlyOneHandler(at, *h)
}

// exactlyOneHandler checks that exactly one member of a union of handlers is set.
func exactlyOneHandler(at *field.Path, union any) field.ErrorList {
	switch n := countSet(union); {
	case n == 0:
		return field.ErrorList{field.Required(at, "must specify a handler type")}
	case n > 1:
		return field.ErrorList{field.Forbidden(at, "may not specify more than 1 handler type")}
	}
	return nil
}

// probe checks a probe, if there is one. once says that its successThreshold must be 1.
func probe(p *corev1.Probe, at *field.Path, once bool) field.ErrorList {
	if p == nil {
		return nil
	}
	out := exactlyOneHandler(at, p.ProbeHandler)
	if h := p.HTTPGet; h != nil {
		out = append(out, portOrName(at.Child("httpGet", "port"), h.Port)...)
	}
	if h := p.TCPSocket; h != nil {
		out = append(out, portOrName(at.Child("tcpSocket", "port"), h.Port)...)
	}
	for name, n := range map[string]int32{
		"initialDelaySeconds": p.InitialDelaySeconds, "timeoutSeconds": p.TimeoutSeconds, "periodSeconds": p.PeriodSeconds,
		"successThreshold": p.SuccessThreshold, "failureThreshold": p.FailureThreshold,
	} {
		out = append(out, nonNegative(at.Child(name), &n)...)
	}
	if once && p.SuccessThreshold > 1 {
		out = append(out, field.Invalid(at.Child("successThreshold"), p.SuccessThreshold, "must be 1"))
	}
	slices.SortStableFunc(out, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return out
}

// portOrName checks a port by its number or its name.
func portOrName(at *field.Path, p intstr.IntOrString) field.ErrorList {
	if p.Type == intstr.Int {
		return port(at, p.IntVal)
	}
	return invalid(at, p.StrVal, validation.IsValidPortName(p.StrVal))
}
