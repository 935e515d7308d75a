package program

import (
	"fmt"
	"slices"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
)

// A partForm is what a part of the contract is made of.
type partForm struct {
	kind cue.Kind
	// hint says how to write the part, for who wrote something of another kind.
	hint string
}

const (
	conditionHint  = "a condition is true or false, such as cr.spec.replicas > 0"
	conditionsHint = "write each condition under a name, such as enough: live.web.deployment.status.availableReplicas >= 1"
)

// rootForms are those of fields at the root of a package, componentForms those of the parts of a component, and memberForms those of
// what is in these parts under names.
var (
	rootForms = map[string]partForm{
		"components": {cue.StructKind, "write each component under a name, as in components: web: {...}"},
		"inputs":     {cue.StructKind, "write each input under a name, as in inputs: settings: {...}"},
		"hooks":      {cue.StructKind, "write hooks under their phase and a name, as in hooks: afterDeploy: migrate: {...}"},
		"versions":   {cue.StructKind, "write each version under its name, as in versions: v1: spec: #Spec"},
	}
	componentForms = map[string]partForm{
		"when":      {cue.BoolKind, "when is one condition: join several with &&, as in when: cr.spec.enabled && cr.spec.replicas > 0"},
		"dependsOn": {cue.StructKind, "write the names of components as fields, as in dependsOn: config: {}"},
		"requires":  {cue.StructKind, conditionsHint},
		"verify":    {cue.StructKind, conditionsHint},
		"failed":    {cue.StructKind, conditionsHint},
		"objects":   {cue.StructKind, "write each object under a name, as in objects: configmap: {...}"},
		"policy":    {cue.StructKind, `write a policy under the name of its object, as in policy: configmap: apply: "createOnly"`},
		"outputs":   {cue.StructKind, "write each output under a name, as in outputs: url: ..."},
		"timeout":   {cue.StringKind, `write a length of time, such as "30s" or "1h30m"`},
	}
	memberForms = map[string]partForm{
		"dependsOn": {cue.StructKind, `{} is the usual dependency; {until: "applied"} is one for the order only`},
		"requires":  {cue.BoolKind, conditionHint},
		"verify":    {cue.BoolKind, conditionHint},
		"failed":    {cue.BoolKind, conditionHint},
		"objects":   {cue.StructKind, "an object has apiVersion, kind, metadata and the fields of its kind"},
		"policy":    {cue.StructKind, `write the fields of a policy, such as apply: "createOnly"`},
	}
)

// explainPart returns the fault of a part of the contract with how to write it, if its value is of another kind, such as a list of
// components. It says the kind where the value may be long, or is not known.
func (s *Static) explainPart(f fault.Fault) (fault.Fault, bool) {
	path := cue.ParsePath(f.Path)
	form, ok := formOf(path.Selectors())
	if !ok || f.Code != fault.Invalid {
		return f, false
	}
	parts := unifiedIn(s.value.LookupPath(path))
	at := slices.IndexFunc(parts, func(v cue.Value) bool {
		kind := v.IncompleteKind()
		return kind != cue.BottomKind && kind&form.kind == 0
	})
	if at < 0 {
		return f, false
	}
	f.Hint = form.hint
	if is := parts[at].IncompleteKind(); is&(cue.StructKind|cue.ListKind) != 0 || !parts[at].IsConcrete() {
		f.Message = fmt.Sprintf("it is a %v, and must be a %v", is, form.kind)
		if own := s.index.PositionOf(selectorNames(path.Selectors())...); !own.IsZero() {
			f.Position = own
		}
	}
	return f, true
}

// selectorNames returns the names in a path of fields.
func selectorNames(path []cue.Selector) []string {
	var out []string
	for _, sel := range path {
		out = append(out, nameOf(sel))
	}
	return out
}

// formOf returns what a part at a path is made of, if that is known.
func formOf(path []cue.Selector) (partForm, bool) {
	names := selectorNames(path)
	if len(names) > 1 && names[0] == "hooks" {
		names = names[1:] // a phase has components as well
	}
	var forms map[string]partForm
	switch len(names) {
	case 1:
		forms = rootForms
	case 3:
		forms = componentForms
	case 4:
		names, forms = names[:3], memberForms
	default:
		return partForm{}, false
	}
	form, ok := forms[names[len(names)-1]]
	return form, ok
}

// unifiedIn returns the values that a value is unified from.
func unifiedIn(v cue.Value) []cue.Value {
	op, args := v.Expr()
	if op != cue.AndOp {
		return []cue.Value{v}
	}
	var out []cue.Value
	for _, a := range args {
		out = append(out, unifiedIn(a)...)
	}
	return out
}
