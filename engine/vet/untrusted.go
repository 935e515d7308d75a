package vet

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// A danger is a field of an object with which whoever decides about it does what only the
// operator may.
type danger struct {
	// word is what the attribute @untrusted calls it.
	word string
	// kinds are those that have the field; none is every kind.
	kinds []string
	path  []string
	// allows says what whoever decides about it may do.
	allows string
	// named are the kinds of which the field names an object: one that the package makes
	// itself is nobody else's.
	named []string
	// truth says that true and false are a choice that matters.
	truth bool
}

// dangers are all that is looked for in objects.
var dangers = slices.Concat([]danger{
	{word: kindWord, path: []string{"kind"}, allows: "has the operator make an object of whatever kind, such as a RoleBinding"},
	{word: kindWord, path: []string{"apiVersion"}, allows: "has the operator make an object of whatever group"},
	{word: "secretType", kinds: []string{"Secret"}, path: []string{"type"}, allows: "has a Secret that Kubernetes fills with the token of any ServiceAccount of the namespace"},
	{word: "rbac", kinds: bindings, path: []string{"roleRef", "kind"}, allows: "binds roles of the whole cluster"},
	{word: "rbac", kinds: bindings, path: []string{"roleRef", "name"}, allows: "binds any role that the operator may bind", named: []string{"Role", "ClusterRole"}},
	{word: "rbac", kinds: bindings, path: []string{"subjects", syntax.Each, "kind"}, allows: "gives the role to whomever they like"},
	{word: "rbac", kinds: bindings, path: []string{"subjects", syntax.Each, "namespace"}, allows: "gives the role to a ServiceAccount of another namespace"},
	{word: "rbac", kinds: bindings, path: []string{"subjects", syntax.Each, "name"}, allows: "gives the role to whomever they like", named: []string{"ServiceAccount"}},
	{word: "rbac", kinds: []string{"Role", "ClusterRole"}, path: []string{"rules"}, allows: "writes the rules of a role, up to all that the operator may do"},
	{word: "rbac", kinds: []string{"ClusterRole"}, path: []string{"aggregationRule"}, allows: "puts any roles together in one"},
	{word: "webhook", kinds: webhooks, path: []string{"webhooks", syntax.Each, "clientConfig"}, allows: "has the API server send objects of others to an address of their choice"},
	{word: "webhook", kinds: []string{"CustomResourceDefinition"}, path: []string{"spec", "conversion"}, allows: "has the API server send objects of others to an address of their choice"},
	{word: "webhook", kinds: []string{"APIService"}, path: []string{"spec", "service"}, allows: "has the API server send requests of others to a Service of their choice"},
	{word: "csr", kinds: []string{"CertificateSigningRequest"}, path: []string{"spec"}, allows: "asks for a certificate of whatever identity with the operator's name"},
}, podDangers())

var (
	bindings = []string{"RoleBinding", "ClusterRoleBinding"}
	webhooks = []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}
)

// podSpecs are where kinds have what their pods are.
var podSpecs = []struct {
	kinds []string
	path  []string
}{
	{[]string{"Pod"}, []string{"spec"}},
	{[]string{"PodTemplate"}, []string{"template", "spec"}},
	{[]string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController"}, []string{"spec", "template", "spec"}},
	{[]string{"CronJob"}, []string{"spec", "jobTemplate", "spec", "template", "spec"}},
}

// podDangers are those of pods, wherever a kind has them.
func podDangers() []danger {
	each := syntax.Each
	var out []danger
	for _, at := range podSpecs {
		add := func(word, allows string, truth bool, path ...string) {
			out = append(out, danger{word: word, kinds: at.kinds, path: slices.Concat(at.path, path), allows: allows, truth: truth})
		}
		for _, field := range []string{"serviceAccountName", "serviceAccount"} {
			add("serviceAccount", "runs pods as any ServiceAccount of the namespace, with its rights", false, field)
			out[len(out)-1].named = []string{"ServiceAccount"}
		}
		for _, field := range []string{"hostNetwork", "hostPID", "hostIPC"} {
			add("host", "runs pods among the processes and in the network of a node", true, field)
		}
		add("hostPath", "gives pods the files of a node", false, "volumes", each, "hostPath")
		for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
			add("privileged", "runs pods with all rights on a node", true, list, each, "securityContext", "privileged")
			add("privileged", "runs pods with more rights on a node than others", false, list, each, "securityContext", "capabilities", "add")
		}
	}
	return out
}

// untrusted finds where a field with which more can be done than its author may mean comes
// from whoever writes the custom resource, its annotations, an input or a live object.
func untrusted(v *view) fault.Faults {
	objects, inputs, wholes := v.Syntax().Written()
	d := dangers[0]
	out := v.exposed(wholes, danger{word: d.word, allows: "has the operator make whatever objects"})
	for _, o := range objects {
		for _, d := range dangers {
			if d.isOf(o) && !v.ownNames(o, d) {
				out = append(out, v.exposed(o.Outside(d.path...), d)...)
			}
		}
		out = append(out, v.exposedNamespace(o)...)
	}
	for _, i := range inputs {
		for _, field := range []string{"kind", "apiVersion"} {
			out = append(out, v.exposed(i.Outside(field), danger{word: "input", allows: "has the operator read objects of whatever kind, such as Secrets"})...)
		}
		if v.opens(i) {
			out = append(out, v.exposed(i.Outside("namespace"), danger{word: "input", allows: "has the operator read such objects in whatever namespace"})...)
		}
	}
	return distinct(out)
}

// cuts warns, once, that names lead further than they are followed.
func cuts(v *view) fault.Faults {
	objects, inputs, origins := v.Syntax().Written()
	for _, o := range objects {
		for _, d := range dangers {
			if d.isOf(o) {
				origins = append(origins, o.Outside(d.path...)...)
			}
		}
	}
	for _, i := range inputs {
		origins = append(origins, i.Outside("kind")...)
		origins = append(origins, i.Outside("namespace")...)
	}
	at := slices.IndexFunc(origins, func(o syntax.Outside) bool { return o.Cut })
	if at < 0 {
		return nil
	}
	return fault.Faults{{
		Position: origins[at].At,
		Path:     origins[at].Field,
		Message:  "what it is made of leads through more names than vet follows, so that it is not judged whether somebody else decides about it",
		Hint:     "write it with fewer names in between, or look for yourself",
	}}
}

// An exposure is a danger in a field.
type exposure struct {
	fault.Fault

	word string
}

// distinct returns one fault for each field and word, as each word has to be written. Whoever
// decides about the kind decides about all, and the word for that is the only one.
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

// kindWord is the word of a danger that an object may be anything.
const kindWord = "kind"

// isOf reports whether an object has the field. One whose kind somebody chooses among those that
// the schema names may be of any kind, as far as the text tells; what is all of spec says nothing
// of such a one. Where any kind is meant, there is no more to say.
func (d danger) isOf(o syntax.Written) bool {
	isMeant := func(from syntax.Outside) bool { return slices.Contains(from.Meant, kindWord) }
	if from := o.Outside("kind"); len(from) > 0 && !slices.ContainsFunc(from, isMeant) {
		return len(d.path) > 1 || d.path[0] != "spec"
	}
	return len(d.kinds) == 0 || slices.ContainsFunc(o.Kinds, func(k string) bool { return slices.Contains(d.kinds, k) })
}

// opens reports whether the package reaches, for what an object or an input may be, into
// namespaces that it does not have written.
func (v *view) opens(w syntax.Written) bool {
	kinds, freely := v.kindsOf(w)
	return slices.ContainsFunc(v.Reach().Kinds(), func(k schema.GroupKind) bool {
		return (freely || slices.Contains(kinds, k.Kind)) && v.Reach().Open(k)
	})
}

// exposedNamespace finds namespaces that somebody else chooses, where the package reaches
// into namespaces that it does not have written. One that it makes itself is its own.
func (v *view) exposedNamespace(o syntax.Written) []exposure {
	d := danger{word: "namespace", path: []string{"metadata", "namespace"}, named: []string{"Namespace"}, allows: "has such objects in whatever namespace the reach of the package lets in"}
	if !v.opens(o) || v.Meta().ClusterScoped || v.ownNames(o, d) {
		return nil
	}
	return v.exposed(o.Outside(d.path...), d)
}

// exposed returns a fault for each origin that somebody else may fill with what they like,
// unless the author says that it is meant.
func (v *view) exposed(origins []syntax.Outside, d danger) []exposure {
	var out []exposure
	for _, o := range origins {
		if o.Cut || slices.Contains(o.Meant, d.word) {
			continue // what was cut is warned of
		}
		who, open := v.whoWrites(o, d.truth)
		if !open {
			continue
		}
		out = append(out, exposure{word: d.word, Fault: fault.Fault{
			Position: o.At,
			Path:     o.Field,
			Message:  fmt.Sprintf("comes from %s: whoever may write %s %s", o.Reference, who, d.allows),
			Hint:     fmt.Sprintf(`write it out, or let the schema name what it may be, as in "a" | "b"; @untrusted(%s) beside the field says that it is meant`, d.word),
		}})
	}
	return out
}

// whoWrites returns what somebody has to be able to write to decide about a value, and
// whether they may decide as they like.
func (v *view) whoWrites(o syntax.Outside, truth bool) (who string, open bool) {
	path := slices.Concat(o.Path, o.Below)
	switch {
	case path[0] == "config":
		if v.Locked(path[1:]) {
			return "", false
		}
		return "the annotation operetta.dev/config", o.Key || isOpen(v.ConfigSchema(), path[1:], truth, 0)
	case path[0] == "live":
		return o.Reference.String(), len(path) > 3 && !slices.Contains(identifying, strings.Join(path[3:], "."))
	case path[0] == "inputs":
		return o.Reference.String(), len(path) > 2 && !v.trusted(path[1])
	case len(path) == 1:
		return "the resource", true
	case path[1] == "spec":
		spec, _ := fieldOf(v.CRSchema(), "spec")
		return strings.TrimPrefix(o.Reference.String(), "cr."), o.Key || isOpen(spec, path[2:], truth, 0)
	case path[1] == "metadata" && len(path) > 2:
		return strings.TrimPrefix(o.Reference.String(), "cr."), slices.Contains([]string{"name", "labels", "annotations", syntax.Each}, path[2])
	}
	return "", false
}

// identifying are the fields of a live object that are as the package has them.
var identifying = []string{"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid"}

// trusted reports whether an input is where a tenant does not write: in another namespace
// that the package has written.
func (v *view) trusted(input string) bool {
	at := v.Static("inputs", input, "namespace")
	namespace, err := at.String()
	return err == nil && namespace != ""
}

// isOpen reports whether a value of a schema, at a path, may be something that the schema
// does not have written. Numbers are no names, and true or false matters to some only.
func isOpen(schema cue.Value, path []string, truth bool, depth int) bool {
	switch {
	case depth > maxDepth:
		return true
	case len(path) > 0 && path[0] == syntax.Each:
		return slices.ContainsFunc(members(schema), func(m cue.Value) bool { return isOpen(m, path[1:], truth, depth+1) }) || isAny(schema)
	case len(path) > 0:
		if next, ok := fieldOf(schema, path[0]); ok {
			return isOpen(next, path[1:], truth, depth+1)
		}
		return schema.Allows(cue.Str(path[0])) && schema.IncompleteKind()&cue.StructKind != 0
	}
	switch kind := schema.IncompleteKind(); {
	case isAny(schema):
		return true
	case kind&(cue.StructKind|cue.ListKind) != 0:
		return schema.Allows(cue.AnyString) || slices.ContainsFunc(members(schema), func(m cue.Value) bool { return isOpen(m, nil, truth, depth+1) })
	case kind&(cue.StringKind|cue.BytesKind) != 0:
		return !isWritten(schema)
	default:
		return truth && kind&cue.BoolKind != 0 && !schema.IsConcrete() || truth && kind == cue.BoolKind && !isWritten(schema)
	}
}

func isAny(schema cue.Value) bool { return schema.IncompleteKind() == cue.TopKind }

// members returns the schemas of the fields or elements of a value.
func members(schema cue.Value) []cue.Value {
	var out []cue.Value
	for _, each := range []cue.Selector{cue.AnyIndex, cue.AnyString} {
		if m := schema.LookupPath(cue.MakePath(each)); m.Exists() {
			out = append(out, m)
		}
	}
	it, err := schema.Fields(cue.Optional(true))
	for err == nil && it.Next() {
		out = append(out, it.Value())
	}
	return out
}

// isWritten reports whether a schema is one of a few values that it has written.
func isWritten(schema cue.Value) bool {
	op, args := schema.Expr()
	switch op {
	case cue.OrOp:
		return !slices.ContainsFunc(args, func(a cue.Value) bool { return !isWritten(a) })
	case cue.AndOp:
		return slices.ContainsFunc(args, isWritten)
	case cue.SelectorOp, cue.IndexOp:
		to := cue.Dereference(schema)
		return to != schema && isWritten(to)
	case cue.NoOp:
		if len(args) == 1 && args[0] != schema {
			return isWritten(args[0])
		}
		_, defaults := schema.Default()
		return schema.IsConcrete() && !defaults
	}
	return false
}

// namesOf returns the names of the objects of some kinds that a sample has.
func namesOf(s sample, kinds []string) map[string]bool {
	out := map[string]bool{}
	for _, p := range s.objects() {
		if slices.Contains(kinds, p.Identity.Kind) {
			out[p.Identity.Name] = true
		}
	}
	return out
}

// ownNames reports whether what a field names is, in all samples that have the field, an
// object that the package makes itself.
func (v *view) ownNames(o syntax.Written, d danger) bool {
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
				if !own[name] && !o.Says(name, d.path...) {
					return false
				}
				some = true
			}
		}
	}
	return some
}

// valuesAt returns the texts at a path of a manifest.
func valuesAt(value any, path []string) []string {
	switch v := value.(type) {
	case map[string]any:
		if len(path) > 0 {
			return valuesAt(v[path[0]], path[1:])
		}
	case []any:
		var out []string
		if len(path) > 0 && path[0] == syntax.Each {
			for _, element := range v {
				out = append(out, valuesAt(element, path[1:])...)
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
