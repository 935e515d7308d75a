package vet

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
)

// Uses are the kinds that the branches of a package may render and read, from which the permissions of
// its operator follow.
type Uses struct {
	// Package is the name of the package.
	Package string `json:"package"`
	// ClusterScoped says that its custom resource has no namespace.
	ClusterScoped bool `json:"clusterScoped,omitempty"`
	// HooksBeforeDelete says that there may be hooks before the deletion, which never end in a namespace that is being deleted.
	HooksBeforeDelete bool  `json:"hooksBeforeDelete,omitempty"`
	Kinds             []Use `json:"kinds,omitempty"`
	// Grants are the rules of the roles that the package renders: Kubernetes lets nobody grant a
	// permission that they lack.
	Grants []Grant `json:"grants,omitempty"`
	// Binds are the ClusterRoles that the package binds and does not render.
	Binds []BoundRole `json:"binds,omitempty"`
}

// A Use is one kind that a package renders or reads.
type Use struct {
	schema.GroupKind `json:"kind"`

	// Plural is the plural name, if the package renders the CustomResourceDefinition of the kind.
	Plural string `json:"plural,omitempty"`
	// Scope is empty if it is unknown.
	Scope cluster.Scope `json:"scope,omitempty"`
	// Writes says that the package renders objects of the kind; it only reads them otherwise.
	Writes bool `json:"writes,omitempty"`
	// Replaces says that an object may be written by an update, which is no apply: as a whole, or to change only annotations and owners of
	// an object that is otherwise left as it is.
	Replaces bool `json:"replaces,omitempty"`
	// Deletes says that an object may be deleted.
	Deletes bool `json:"deletes,omitempty"`
	// Elsewhere are the namespaces besides that of the custom resource, as the reach of the package
	// lists them: a * at the end stands for any rest.
	Elsewhere []string `json:"elsewhere,omitempty"`
	// Position is one place in the package that uses the kind.
	Position fault.Position `json:"position"`
}

// Uses returns the kinds that the package may render and read in any of its branches. A kind that only
// an evaluation knows is a fault.
func (e *Examination) Uses() (Uses, fault.Faults) {
	p := e.program
	f := &usesFinder{
		view: e.view(), kinds: map[schema.GroupKind]*Use{}, plurals: map[schema.GroupKind]string{},
		out: Uses{Package: p.Name(), ClusterScoped: p.Meta().ClusterScoped, HooksBeforeDelete: p.MayRun(program.BeforeDelete)},
	}
	f.policies = f.Syntax().Policies()
	f.evaluated()
	objects, inputs, wholes := f.Syntax().SourceObjects()
	for _, from := range wholes {
		f.fault(from, "the object", "write the kind and the apiVersion of the object in the package")
	}
	for _, o := range objects {
		for _, kind := range f.choices(o) {
			f.writes(kind, o.Position(), f.policyOf(o.Path()))
		}
		f.roles(o)
	}
	for _, i := range inputs {
		for _, kind := range f.choices(i) {
			f.use(kind, i.Position())
		}
	}
	for _, use := range f.kinds {
		use.Scope, use.Plural = f.scopes.of(use.GroupKind), f.plurals[use.GroupKind]
		use.Elsewhere = f.Reach().Namespaces(use.GroupKind)
		f.out.Kinds = append(f.out.Kinds, *use)
	}
	slices.SortFunc(f.out.Kinds, func(a, b Use) int { return strings.Compare(a.String(), b.String()) })
	slices.SortFunc(f.out.Binds, BoundRole.compare)
	f.out.Binds = slices.Compact(f.out.Binds)
	faults := f.faults.Sorted()
	return f.out, slices.Compact(faults)
}

// A usesFinder collects the uses of a package.
type usesFinder struct {
	*view

	kinds  map[schema.GroupKind]*Use
	out    Uses
	faults fault.Faults
	// seen are the objects that evaluations show, and policies those in the text.
	seen     []placed
	policies []syntax.SourceObject
	// plurals are the plural names of the kinds whose definitions the package renders.
	plurals map[schema.GroupKind]string
}

// use notes that the package reads a kind.
func (f *usesFinder) use(kind schema.GroupKind, at fault.Position) *Use {
	if f.kinds[kind] == nil {
		f.kinds[kind] = &Use{GroupKind: kind, Position: at}
	}
	return f.kinds[kind]
}

// writes notes that the package renders a kind.
func (f *usesFinder) writes(kind schema.GroupKind, at fault.Position, p program.Policy) {
	use := f.use(kind, at)
	use.Writes = true
	use.Replaces = use.Replaces || p.Adopt || slices.Contains(updating, p.Apply)
	use.Deletes = use.Deletes || p.Delete != orphan || p.Apply == program.RecreateOnImmutable
}

// updating are the policies with which an object that exists is written by an update.
var updating = []string{"replace", "createOnly"}

// evaluated notes what evaluations of the package show.
func (f *usesFinder) evaluated() {
	all := slices.Clone(f.template)
	for _, s := range f.samples {
		all = append(all, s.rollout.Components...)
		for _, i := range s.rollout.Inputs {
			if i.Kind.Version != "" && i.Kind.Kind != "" {
				f.use(i.Kind.GroupKind(), i.Position)
			}
		}
	}
	for _, h := range f.hooks() {
		all = append(all, h.Component)
	}
	f.seen = placedIn(all)
	for _, o := range f.seen {
		if o.Policy.Delete == orphan && !f.alwaysKept(o.component, o.Name) {
			o.Policy.Delete = ""
		}
		f.writes(o.Identity.GroupKind(), o.Position, o.Policy)
		f.defines(o.Manifest)
		f.grants(o)
	}
}

// placedIn returns the objects of components whose kind is known.
func placedIn(components []program.Component) []placed {
	var out []placed
	for _, c := range components {
		for _, o := range c.Objects {
			if o.Identity.Version != "" && o.Identity.Kind != "" {
				out = append(out, placed{c.Name, o})
			}
		}
	}
	return out
}

// orphan is the policy of an object that is left behind.
const orphan = "orphan"

// alwaysKept reports whether objects of a name have the policy delete: "orphan" whatever the custom
// resource: then the text has it under no condition, and no other.
func (f *usesFinder) alwaysKept(component, object string) bool {
	kept := false
	for _, p := range f.policies {
		deletion := p.Choices("delete")
		if !matches(p, component, object) || len(deletion.Texts)+len(deletion.Sources)+len(deletion.Computed) == 0 {
			continue
		}
		other := func(text string) bool { return text != orphan }
		if p.Conditional() || slices.ContainsFunc(deletion.Texts, other) || len(deletion.Sources)+len(deletion.Computed) > 0 {
			return false
		}
		kept = true
	}
	return kept && !slices.ContainsFunc(f.seen, func(p placed) bool {
		return mayBeNamed(component, p.component) && mayBeNamed(object, p.Name) && p.Policy.Delete != orphan
	})
}

// matches reports whether a policy in the text may be that of an object.
func matches(policy syntax.SourceObject, component, object string) bool {
	at := policy.Path()
	return maySame(at[len(at)-3], component) && maySame(at[len(at)-1], object)
}

// defines notes the plural name of a kind whose CustomResourceDefinition the package renders.
func (f *usesFinder) defines(manifest map[string]any) {
	if kind, _, is := cluster.DefinedBy(manifest); is {
		f.plurals[kind], _, _ = unstructured.NestedString(manifest, "spec", "names", "plural")
	}
}

// rbacGroup is the group of roles and their bindings.
const rbacGroup = "rbac.authorization.k8s.io"

// grants notes the rules of a role that the package renders.
func (f *usesFinder) grants(o placed) {
	if o.Identity.Group != rbacGroup || !slices.Contains([]string{"Role", "ClusterRole"}, o.Identity.Kind) {
		return
	}
	var role rbacv1.ClusterRole
	if text, err := json.Marshal(o.Manifest); err != nil || json.Unmarshal(text, &role) != nil {
		return // the API server rejects it, too
	}
	for _, r := range role.Rules {
		for _, word := range slices.Concat(r.Verbs, r.APIGroups, r.Resources, r.NonResourceURLs) {
			if strings.Contains(word, "*") || slices.Contains(boundless, word) {
				f.faults = append(f.faults, fault.Fault{
					Position: o.Position, Path: o.path("rules"),
					Message: fmt.Sprintf("the role grants %q, which the operator would need itself", word),
					Hint:    "write out what is granted; roles with such rules are for an administrator to install",
				})
			}
		}
	}
	f.out.Grants = append(f.out.Grants, Grant{f.placeOf(o), role.Rules})
}

// boundless are the verbs by which one permission becomes any, beside the wildcard.
var boundless = []string{"escalate", "bind", "impersonate"}

// allPowerful is the ClusterRole that allows everything.
const allPowerful = "cluster-admin"

// choices returns the kinds that an object or an input may have. It notes a fault for each that only an
// evaluation of a custom resource knows.
func (f *usesFinder) choices(o syntax.SourceObject) []schema.GroupKind {
	kinds, versions := o.Choices("kind"), o.Choices("apiVersion")
	names, known := f.texts("kind", kinds)
	groups, both := f.texts("apiVersion", versions)
	if !known || !both {
		return nil
	}
	var out []schema.GroupKind
	for _, t := range kinds.Types {
		if group, is := builtInGroup(t.Package); is {
			out = append(out, schema.GroupKind{Group: group, Kind: t.Name})
		}
	}
	shown := f.shown(o.Path())
	for _, name := range names {
		out = append(out, f.paired(o, name, groups, append(shown, out...))...)
	}
	if len(out) == 0 && len(shown) == 0 {
		f.wrong(o, "", "its kind is not in the text of the package, and no evaluation shows it", "write apiVersion and kind of the object as constants")
	}
	return out
}

// paired returns a kind with each group that it may have. If there are several, it has those of which
// the kind is known.
func (f *usesFinder) paired(o syntax.SourceObject, name string, versions []string, shown []schema.GroupKind) []schema.GroupKind {
	var all, known []schema.GroupKind
	for _, version := range versions {
		kind := schema.FromAPIVersionAndKind(version, name).GroupKind()
		all = append(all, kind)
		if f.scopes.of(kind) != "" || slices.Contains(shown, kind) {
			known = append(known, kind)
		}
	}
	of := func(k schema.GroupKind) bool { return k.Kind == name }
	switch {
	case len(known) > 0:
		return known
	case len(all) == 1 || slices.ContainsFunc(shown, of):
		return all
	}
	f.wrong(o, "apiVersion", fmt.Sprintf("it is not clear which apiVersion the kind %s has", name), "write apiVersion and kind of the object as constants, side by side")
	return nil
}

// texts returns the texts that a field may have, and false if others are possible.
func (f *usesFinder) texts(field string, c syntax.Choices) ([]string, bool) {
	texts, all := slices.Clone(c.Texts), true
	for _, from := range c.Sources {
		more, listed := f.listed(from, field)
		if !listed {
			f.fault(from, "the "+field, fmt.Sprintf(`list the values in the schema, as in "a" | "b", or write the %s as a constant`, field))
			all = false
		}
		texts = append(texts, more...)
	}
	for _, from := range c.Computed {
		f.fault(from, "the "+field, fmt.Sprintf("write the %s as a constant, in a branch for each", field))
		all = false
	}
	return texts, all
}

// listed returns the texts that a source outside the package may have, and false if the schema does not
// list them.
func (f *usesFinder) listed(from syntax.ExternalSource, field string) ([]string, bool) {
	path := slices.Concat(from.Path, from.Below)
	switch {
	case from.Cut, from.Key, len(path) < 2:
		return nil, false
	case path[0] == "config":
		return textsAt(f.Config().Schema(), path[1:], 0), !isOpen(f.Config().Schema(), path[1:], false, 0)
	case path[0] == "live":
		// It is the kind of an object of the package itself, which is noted where it is rendered.
		return nil, len(path) == 4 && path[3] == field
	case path[0] == "cr" && path[1] == "spec":
		spec := fieldOf(f.CRSchema(), "spec")
		return textsAt(spec, path[2:], 0), !isOpen(spec, path[2:], false, 0)
	case path[0] == "cr" && len(path) == 2 && path[1] == "kind":
		return []string{f.GroupVersionKind().Kind}, true
	case path[0] == "cr" && len(path) == 2 && path[1] == "apiVersion":
		return []string{f.GroupVersionKind().GroupVersion().String()}, true
	}
	return nil, false
}

// wrong notes what is wrong with an object of the text, or with a field of it.
func (f *usesFinder) wrong(o syntax.SourceObject, field, message, hint string) {
	path := strings.TrimSuffix(strings.Join(o.Path(), ".")+"."+field, ".")
	f.faults = append(f.faults, fault.Fault{Position: o.Position(), Path: path, Message: message, Hint: hint})
}

// fault notes that only an evaluation knows a kind.
func (f *usesFinder) fault(from syntax.ExternalSource, what, hint string) {
	message := what + " comes from " + from.Reference.String() + ", so only an evaluation knows it, and the permissions that it needs are not known"
	if from.Cut {
		message = what + " cannot be followed to where it is written, so the permissions that it needs are not known"
	}
	f.faults = append(f.faults, fault.Fault{Position: from.At, Path: from.Field, Message: message, Hint: hint})
}

// shown returns the kinds with which evaluations show an object of the text.
func (f *usesFinder) shown(path []string) []schema.GroupKind {
	var out []schema.GroupKind
	if len(path) < 3 {
		return nil
	}
	component, object := path[len(path)-3], path[len(path)-1]
	for _, p := range f.seen {
		if mayBeNamed(component, p.component) && mayBeNamed(object, p.Name) {
			out = append(out, p.Identity.GroupKind())
		}
	}
	return out
}

// mayBeNamed reports whether a label of the text may stand for a name. The name of a hook has its phase
// before it.
func mayBeNamed(label, name string) bool {
	computed := label == syntax.Each || strings.ContainsAny(label, `\([`)
	label = strings.Trim(label, `"`)
	return computed || label == name || strings.HasSuffix(name, "."+label)
}

// policyOf returns the policy of an object in the text, which need not be evaluated: of several, the one
// that takes the most permissions.
func (f *usesFinder) policyOf(path []string) program.Policy {
	component, object := path[len(path)-3], path[len(path)-1]
	var out program.Policy
	for _, p := range f.policies {
		if !matches(p, component, object) {
			continue
		}
		apply := p.Choices("apply")
		updates := slices.ContainsFunc(apply.Texts, func(text string) bool { return slices.Contains(updating, text) })
		if updates || len(apply.Sources)+len(apply.Computed) > 0 {
			out.Apply = "replace"
		}
		out.Adopt = out.Adopt || p.MayBeTrue("adopt")
	}
	if f.alwaysKept(component, object) {
		out.Delete = orphan
	}
	return out
}

// maySame reports whether two labels of the text may stand for one name.
func maySame(a, b string) bool {
	return mayBeNamed(a, strings.Trim(b, `"`)) || mayBeNamed(b, strings.Trim(a, `"`))
}

// roles notes the roles that a binding names. Whoever binds a role needs its permissions.
func (f *usesFinder) roles(o syntax.SourceObject) {
	if !slices.ContainsFunc(o.Kinds, func(k string) bool { return slices.Contains(bindings, k) }) {
		return
	}
	own := map[string]bool{}
	var named []string
	for _, p := range f.seen {
		if slices.Contains([]string{"Role", "ClusterRole"}, p.Identity.Kind) {
			own[p.Identity.Name] = true
		}
		if slices.Contains(o.Kinds, p.Identity.Kind) && slices.Contains(bindings, p.Identity.Kind) {
			named = append(named, valuesAt(p.Manifest, []string{"roleRef", "name"})...)
		}
	}
	name := o.Choices("roleRef", "name")
	names := slices.Concat(named, name.Texts)
	// A name that is computed is harmless if it is that of a role which the package renders.
	harmless := len(named) > 0 && !slices.ContainsFunc(named, func(n string) bool { return !own[n] })
	for _, from := range name.Sources {
		more, listed := f.listed(from, "name")
		if names = append(names, more...); !listed && !harmless {
			f.fault(from, "the role", `list the roles in the schema, as in "view" | "edit"`)
		}
	}
	for _, from := range name.Computed {
		if !harmless {
			f.fault(from, "the role", "write the role as a constant, in a branch for each")
		}
	}
	kinds := o.Choices("roleRef", "kind").Texts
	for _, role := range names {
		switch {
		case own[role]:
		case role == allPowerful:
			f.wrong(o, "roleRef", "the package binds "+role+", so the operator would need all permissions itself", "bind a role that allows what is needed")
		case slices.Contains(kinds, "Role"):
			f.wrong(o, "roleRef", fmt.Sprintf("the package binds the Role %s and does not render it, so the permissions that it needs are not known", role), "render the Role, or bind a ClusterRole")
		default:
			f.binds(o, role)
		}
	}
}

// binds notes a ClusterRole at each place of a binding.
func (f *usesFinder) binds(o syntax.SourceObject, role string) {
	for _, at := range f.placesOf(o) {
		f.out.Binds = append(f.out.Binds, BoundRole{at, role})
	}
}

// builtInGroup returns the API group of a package of Kubernetes types.
func builtInGroup(importPath string) (string, bool) {
	rest, is := strings.CutPrefix(importPath, program.TypesPath)
	name, _, versioned := strings.Cut(rest, "/")
	if !is || !versioned {
		return "", false
	}
	return cluster.BuiltInGroup(name)
}
