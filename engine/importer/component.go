package importer

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A component is one component of the package.
type component struct {
	name string
	// about is a sentence that says what it has.
	about   string
	objects []*object
	// after are the components that it depends on, and until what it waits for.
	after []string
	until string
}

// The components that others depend on.
const (
	definitions = "definitions"
	spaces      = "namespaces"
	access      = "access"
	config      = "config"
	before      = "before"
	more        = "more"
	afterwards  = "afterwards"
)

// bases are the kinds of the components that workloads depend on.
var bases = map[string]string{
	"CustomResourceDefinition.apiextensions.k8s.io": definitions,
	"Namespace": spaces, "ResourceQuota": spaces, "LimitRange": spaces, "PriorityClass.scheduling.k8s.io": spaces,
	"StorageClass.storage.k8s.io": spaces, "PersistentVolume": spaces,
	"ServiceAccount": access, "Role.rbac.authorization.k8s.io": access, "RoleBinding.rbac.authorization.k8s.io": access,
	"ClusterRole.rbac.authorization.k8s.io": access, "ClusterRoleBinding.rbac.authorization.k8s.io": access,
	"ConfigMap": config, "Secret": config, "PersistentVolumeClaim": config,
}

// abouts say what the components have that are not about one workload.
var abouts = map[string]string{
	definitions: "kinds that the other objects have",
	spaces:      "namespaces, and what bounds what is in them",
	access:      "accounts and what they may do",
	config:      "configuration and storage of the workloads",
	before:      "what runs before the workloads, as the hooks of a chart",
	more:        "what belongs to no workload",
	afterwards:  "what comes after the workloads, as the hooks of a chart",
}

// workloads are the kinds that have pods, with the path of the template.
var workloads = map[string][]string{
	"Deployment.apps": {"spec", "template"}, "StatefulSet.apps": {"spec", "template"}, "DaemonSet.apps": {"spec", "template"}, "ReplicaSet.apps": {"spec", "template"},
	"Job.batch": {"spec", "template"}, "CronJob.batch": {"spec", "jobTemplate", "spec", "template"}, "Pod": {},
}

// autoscalerKind is the kind of autoscalers.
const autoscalerKind = "HorizontalPodAutoscaler.autoscaling"

// hookAnnotation is how a chart says that an object is a hook.
const hookAnnotation = "helm.sh/hook"

// components divides objects into components: what others need, each workload with what belongs to it, and the rest.
// short returns the name of a workload in the package.
func components(objects []*object, short func(string) string) []component {
	taken := map[string]bool{}
	for name := range abouts {
		taken[name] = true
	}
	groups := map[string][]*object{}
	var works []component
	var rest []*object
	for _, o := range objects {
		switch place := placeOf(o); {
		case place != "":
			groups[place] = append(groups[place], o)
		case workloads[o.groupKind()] != nil:
			name := identifier(short(o.GetName()), taken)
			works = append(works, component{name: name, about: fmt.Sprintf("the %s %s", o.GetKind(), o.GetName()), objects: []*object{o}})
		default:
			rest = append(rest, o)
		}
	}
	for _, o := range rest {
		if i := slices.IndexFunc(works, func(c component) bool { return belongs(o, c.objects[0]) }); i >= 0 {
			works[i].objects = append(works[i].objects, o)
			continue
		}
		groups[more] = append(groups[more], o)
	}
	return ordered(groups, works)
}

// placeOf returns the component of an object that its kind or the chart decides about, or "". Objects that only run at
// another time than an installation or an upgrade were left out before.
func placeOf(o *object) string {
	for _, at := range []string{"pre-install", "post-install", "pre-upgrade", "post-upgrade"} { // the installation decides
		if !slices.Contains(o.hooks(), at) {
			continue
		}
		if strings.HasPrefix(at, "pre-") {
			return before
		}
		return afterwards
	}
	return bases[o.groupKind()]
}

// hooks returns the times at which a chart runs an object, or none if it is no hook.
func (o *object) hooks() []string {
	text := o.GetAnnotations()[hookAnnotation]
	if text == "" {
		return nil
	}
	var out []string
	for at := range strings.SplitSeq(text, ",") {
		out = append(out, strings.TrimSpace(at))
	}
	return out
}

// installs reports whether an object is there, or runs, when a chart is installed or upgraded. Others are for its removal,
// a way back, or tests.
func (o *object) installs() bool {
	hooks := o.hooks()
	return len(hooks) == 0 || slices.ContainsFunc(hooks, func(at string) bool {
		return strings.HasSuffix(at, "-install") || strings.HasSuffix(at, "-upgrade")
	})
}

// ordered returns the components with their dependencies: definitions are waited for until they are served, and of the
// others that they are applied, because a claim may be bound only once a pod needs it.
func ordered(groups map[string][]*object, works []component) []component {
	var out []component
	var there []string
	add := func(c component, until string) {
		c.after, c.until = slices.Clone(there), until
		out = append(out, c)
	}
	group := func(name string) bool {
		if len(groups[name]) == 0 {
			return false
		}
		add(component{name: name, about: abouts[name], objects: groups[name]}, "applied")
		return true
	}
	for _, name := range []string{definitions, spaces, access, config, before} {
		if group(name) {
			there = append(there, name)
		}
	}
	for _, w := range works {
		add(w, "applied")
	}
	for _, w := range works {
		there = append(there, w.name)
	}
	if group(more) {
		there = append(there, more)
	}
	group(afterwards)
	nameObjects(out)
	return out
}

// verified are the dependencies whose health is waited for, and not only that they are applied.
var verified = map[string]bool{definitions: true, before: true}

// nameObjects names the objects of each component: by their kind, and their name where a kind is there several times.
func nameObjects(all []component) {
	for _, c := range all {
		kinds := map[string]int{}
		for _, o := range c.objects {
			kinds[o.GetKind()]++
		}
		taken := map[string]bool{}
		for _, o := range c.objects {
			o.component = c.name
			name := strings.ToLower(o.GetKind())
			if kinds[o.GetKind()] > 1 {
				name += "-" + o.GetName()
			}
			o.name = identifier(name, taken)
		}
	}
}

// belongs reports whether an object is about the pods of a workload: a Service or budget that selects them, or an
// autoscaler of it.
func belongs(o, workload *object) bool {
	if o.GetNamespace() != workload.GetNamespace() {
		return false
	}
	switch o.groupKind() {
	case "Service":
		selector, _, _ := unstructured.NestedStringMap(o.Object, "spec", "selector")
		return selects(selector, workload)
	case "PodDisruptionBudget.policy", "NetworkPolicy.networking.k8s.io":
		path := []string{"spec", "selector", "matchLabels"}
		if o.GetKind() == "NetworkPolicy" {
			path[1] = "podSelector"
		}
		selector, _, _ := unstructured.NestedStringMap(o.Object, path...)
		return selects(selector, workload)
	case autoscalerKind:
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "scaleTargetRef", "kind")
		name, _, _ := unstructured.NestedString(o.Object, "spec", "scaleTargetRef", "name")
		return kind == workload.GetKind() && name == workload.GetName()
	}
	return false
}

// selects reports whether labels select the pods of a workload.
func selects(selector map[string]string, workload *object) bool {
	labels, _, _ := unstructured.NestedStringMap(workload.Object, append(slices.Clone(workloads[workload.groupKind()]), "metadata", "labels")...)
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return len(selector) > 0
}

var noName = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)

// identifier returns a name for a component or an object that is not taken, and takes it.
func identifier(name string, taken map[string]bool) string {
	name = strings.Trim(noName.ReplaceAllString(name, "-"), "-_")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "x" + name
	}
	name = name[:min(len(name), 100)]
	out := name
	for n := 2; taken[out]; n++ {
		out = fmt.Sprintf("%s-%d", name, n)
	}
	taken[out] = true
	return out
}

// reachOf returns what the package may own beyond the namespace of the resource, by kind: the namespaces, or none for
// what is in none.
func reachOf(objects []*object) map[string][]string {
	out := map[string]map[string]bool{}
	for _, o := range objects {
		if o.scope == "Namespaced" && o.GetNamespace() == "" {
			continue
		}
		kind := o.groupKind()
		if out[kind] == nil {
			out[kind] = map[string]bool{}
		}
		if o.GetNamespace() != "" {
			out[kind][o.GetNamespace()] = true
		}
	}
	reach := map[string][]string{}
	for kind, in := range out {
		reach[kind] = slices.Sorted(maps.Keys(in))
	}
	return reach
}
