package vet

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// A danger is a field of an object that gives the operator's permissions to whoever decides about it.
type danger struct {
	// word is the argument of the attribute @untrusted for it.
	word string
	// kinds are the kinds that have the field; none stands for every kind.
	kinds []string
	path  []string
	// allows says what somebody who decides about the field can do.
	allows string
	// named are the kinds of the objects that the field names. An object that the package creates
	// itself belongs to nobody else, so naming it is safe.
	named []string
	// boolean is true if a choice between true and false matters.
	boolean bool
}

// dangers are all fields that the rule looks at.
var dangers = slices.Concat([]danger{
	{word: kindWord, path: []string{"kind"}, allows: "create objects of any kind with the operator's permissions, such as a RoleBinding"},
	{word: kindWord, path: []string{"apiVersion"}, allows: "create objects of any group with the operator's permissions"},
	{word: "secretType", kinds: []string{"Secret"}, path: []string{"type"}, allows: "create a Secret that Kubernetes fills with the token of any ServiceAccount of the namespace"},
	{word: "rbac", kinds: bindings, path: []string{"roleRef", "kind"}, allows: "bind roles of the whole cluster"},
	{word: "rbac", kinds: bindings, path: []string{"roleRef", "name"}, allows: "bind any role that the operator may bind", named: []string{"Role", "ClusterRole"}},
	{word: "rbac", kinds: bindings, path: []string{"subjects", syntax.Each, "kind"}, allows: "give the role to anyone"},
	{word: "rbac", kinds: bindings, path: []string{"subjects", syntax.Each, "namespace"}, allows: "give the role to a ServiceAccount of another namespace"},
	{word: "rbac", kinds: bindings, path: []string{"subjects", syntax.Each, "name"}, allows: "give the role to anyone", named: []string{"ServiceAccount"}},
	{word: "rbac", kinds: []string{"Role", "ClusterRole"}, path: []string{"rules"}, allows: "write the rules of a role, up to the permissions of the operator"},
	{word: "rbac", kinds: []string{"ClusterRole"}, path: []string{"aggregationRule"}, allows: "combine any roles into one"},
	{word: "webhook", kinds: webhooks, path: []string{"webhooks", syntax.Each, "clientConfig"}, allows: "make the API server send objects of others to any address"},
	{word: "webhook", kinds: []string{"CustomResourceDefinition"}, path: []string{"spec", "conversion"}, allows: "make the API server send objects of others to any address"},
	{word: "webhook", kinds: []string{"APIService"}, path: []string{"spec", "service"}, allows: "make the API server send requests of others to any Service"},
	{word: "csr", kinds: []string{"CertificateSigningRequest"}, path: []string{"spec"}, allows: "request a certificate for any identity in the name of the operator"},
}, podDangers())

var (
	bindings = []string{"RoleBinding", "ClusterRoleBinding"}
	webhooks = []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}
)

// podSpecs are the paths of the pod spec in each kind.
var podSpecs = []struct {
	kinds []string
	path  []string
}{
	{[]string{"Pod"}, []string{"spec"}},
	{[]string{"PodTemplate"}, []string{"template", "spec"}},
	{[]string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController"}, []string{"spec", "template", "spec"}},
	{[]string{"CronJob"}, []string{"spec", "jobTemplate", "spec", "template", "spec"}},
}

// podDangers returns the dangers of pods, for each kind that has a pod spec.
func podDangers() []danger {
	each := syntax.Each
	var out []danger
	for _, at := range podSpecs {
		add := func(word, allows string, boolean bool, path ...string) {
			out = append(out, danger{word: word, kinds: at.kinds, path: slices.Concat(at.path, path), allows: allows, boolean: boolean})
		}
		for _, field := range []string{"serviceAccountName", "serviceAccount"} {
			add("serviceAccount", "run pods as any ServiceAccount of the namespace, with its permissions", false, field)
			out[len(out)-1].named = []string{"ServiceAccount"}
		}
		for _, field := range []string{"hostNetwork", "hostPID", "hostIPC"} {
			add("host", "run pods in the network and among the processes of a node", true, field)
		}
		add("hostPath", "give pods access to the files of a node", false, "volumes", each, "hostPath")
		for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
			add("privileged", "run pods with all privileges on a node", true, list, each, "securityContext", "privileged")
			add("privileged", "run pods with additional privileges on a node", false, list, each, "securityContext", "capabilities", "add")
		}
	}
	return out
}

// untrusted finds dangerous fields whose value comes from the custom resource, its annotations, an
// input or a live object, so that somebody other than the author decides about it.
func untrusted(v *view) fault.Faults {
	objects, inputs, wholes := v.Syntax().SourceObjects()
	out := v.exposed(wholes, danger{word: kindWord, allows: "create any objects with the operator's permissions"})
	for _, o := range objects {
		for _, d := range dangers {
			if d.isOf(o) && !v.ownNames(o, d) {
				out = append(out, v.exposed(o.ExternalSources(d.path...), d)...)
			}
		}
		out = append(out, v.exposedNamespace(o)...)
	}
	for _, i := range inputs {
		for _, field := range []string{"kind", "apiVersion"} {
			out = append(out, v.exposed(i.ExternalSources(field), danger{word: "input", allows: "make the operator read objects of any kind, such as Secrets"})...)
		}
		if v.opens(i) {
			out = append(out, v.exposed(i.ExternalSources("namespace"), danger{word: "input", allows: "make the operator read such objects in any namespace"})...)
		}
	}
	return distinct(out)
}

// An exposure is a fault about a danger.
type exposure struct {
	fault.Fault

	word string
}

// distinct returns one fault for each field and word, because an author has to write each word. But
// somebody who decides about the kind decides about everything, so the word kind is enough.
func distinct(exposures []exposure) fault.Faults {
	type key struct {
		at         fault.Position
		path, word string
	}
	seen := map[key]bool{}
	for _, e := range exposures {
		if e.word == kindWord {
			seen[key{e.Position, e.Path, ""}] = true
		}
	}
	var out fault.Faults
	for _, e := range exposures {
		k := key{e.Position, e.Path, e.word}
		if seen[k] || e.word != kindWord && seen[key{e.Position, e.Path, ""}] {
			continue
		}
		seen[k] = true
		out = append(out, e.Fault)
	}
	return out
}

// kindWord is the word for an object of any kind.
const kindWord = "kind"

// isOf reports whether an object has the field. If somebody chooses its kind from a list in the schema,
// the text does not tell which kind it is, so every field counts except for spec as a whole. If the
// author intends any kind to be chosen, only the kinds in the text count.
func (d danger) isOf(o syntax.SourceObject) bool {
	isMeant := func(from syntax.ExternalSource) bool { return slices.Contains(from.Meant, kindWord) }
	if from := o.ExternalSources("kind"); len(from) > 0 && !slices.ContainsFunc(from, isMeant) {
		return len(d.path) > 1 || d.path[0] != "spec"
	}
	return len(d.kinds) == 0 || slices.ContainsFunc(o.Kinds, func(k string) bool { return slices.Contains(d.kinds, k) })
}

// opens reports whether the package reaches into namespaces that it does not list, for a kind that an
// object or an input may have.
func (v *view) opens(w syntax.SourceObject) bool {
	kinds, freely := v.kindsOf(w)
	return slices.ContainsFunc(v.Reach().Kinds(), func(k schema.GroupKind) bool {
		return (freely || slices.Contains(kinds, k.Kind)) && v.Reach().HasPattern(k)
	})
}

// exposedNamespace finds namespaces that somebody else chooses, if the package reaches into namespaces
// that it does not list. A namespace that the package creates itself is safe.
func (v *view) exposedNamespace(o syntax.SourceObject) []exposure {
	d := danger{word: "namespace", path: []string{"metadata", "namespace"}, named: []string{"Namespace"}, allows: "place such objects in any namespace within the reach of the package"}
	if !v.opens(o) || v.Meta().ClusterScoped || v.ownNames(o, d) {
		return nil
	}
	return v.exposed(o.ExternalSources(d.path...), d)
}

// exposed returns a fault for each origin whose value somebody else may choose freely, unless the
// author says that this is intended.
func (v *view) exposed(origins []syntax.ExternalSource, d danger) []exposure {
	var out []exposure
	for _, o := range origins {
		if o.Cut || slices.Contains(o.Meant, d.word) {
			continue // the rule unfollowed warns of a cut
		}
		who, open := v.whoWrites(o, d.boolean)
		if !open {
			continue
		}
		out = append(out, exposure{word: d.word, Fault: fault.Fault{
			Position: o.At,
			Path:     o.Field,
			Message:  fmt.Sprintf("comes from %s: anyone who may write %s can %s", o.Reference, who, d.allows),
			Hint:     fmt.Sprintf(`write a constant, or list the values in the schema, as in "a" | "b"; @untrusted(%s) behind this value, not in #Spec, says that it is intended`, d.word),
		}})
	}
	return out
}

// whoWrites returns what somebody has to write to decide about a value, and whether they may choose
// it freely. If the references to a value were not followed to their end, they may.
func (v *view) whoWrites(o syntax.ExternalSource, booleans bool) (what string, open bool) {
	path := slices.Concat(o.Path, o.Below)
	switch {
	case o.Cut:
		return "", true
	case path[0] == "config":
		if v.Config().Locked(path[1:]) {
			return "", false
		}
		return "the annotation operetta.dev/config", o.Key || isOpen(v.Config().Schema(), path[1:], booleans, 0)
	case path[0] == "live":
		return o.Reference.String(), len(path) > 3 && !slices.Contains(identifying, strings.Join(path[3:], "."))
	case path[0] == "inputs":
		return o.Reference.String(), len(path) > 2 && !v.trusted(path[1])
	case len(path) == 1:
		return "the resource", true
	case path[1] == "spec":
		return strings.TrimPrefix(o.Reference.String(), "cr."), o.Key || isOpen(fieldOf(v.CRSchema(), "spec"), path[2:], booleans, 0)
	case path[1] == "metadata" && len(path) > 2:
		return strings.TrimPrefix(o.Reference.String(), "cr."), slices.Contains([]string{"name", "labels", "annotations", syntax.Each}, path[2])
	}
	return "", false
}

// identifying are the fields of a live object that have the values of the package.
var identifying = []string{"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid"}

// trusted reports whether an input is in a namespace that the package names, where a tenant cannot
// write.
func (v *view) trusted(input string) bool {
	at := v.Lookup("inputs", input, "namespace")
	namespace, err := at.String()
	return err == nil && namespace != ""
}

// namesOf returns the names of the objects of some kinds in a sample.
func namesOf(s sample, kinds []string) map[string]bool {
	out := map[string]bool{}
	for _, p := range s.objects() {
		if slices.Contains(kinds, p.Identity.Kind) {
			out[p.Identity.Name] = true
		}
	}
	return out
}

// ownNames reports whether a field always names an object that the package creates itself, in all
// samples that have the field.
func (v *view) ownNames(o syntax.SourceObject, d danger) bool {
	if len(d.named) == 0 {
		return false
	}
	some := false
	for _, s := range v.samples {
		own := namesOf(s, d.named)
		for _, p := range s.objects() {
			if len(o.Kinds) > 0 && !slices.Contains(o.Kinds, p.Identity.Kind) {
				continue
			}
			for _, name := range valuesAt(p.Manifest, d.path) {
				if !own[name] && !o.HasLiteral(name, d.path...) {
					return false
				}
				some = true
			}
		}
	}
	return some
}

// valuesAt returns the strings at a path of a manifest.
func valuesAt(value any, path []string) []string {
	switch v := value.(type) {
	case map[string]any:
		if len(path) > 0 {
			return valuesAt(v[path[0]], path[1:])
		}
	case []any:
		var out []string
		if len(path) > 0 && path[0] == syntax.Each {
			rest := path[1:]
			for _, element := range v {
				out = append(out, valuesAt(element, rest)...)
			}
		}
		return out
	case string:
		if len(path) == 0 {
			return []string{v}
		}
	}
	return nil
}
