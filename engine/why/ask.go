package why

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun/diff"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/fieldpath"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
	"operetta.dev/engine/redact"
	"operetta.dev/engine/render"
	"operetta.dev/engine/status"
)

// A Question is about one field of one object.
type Question struct {
	// Object names one object, as render.IsNamed understands it.
	Object string
	// Path is the field, such as .spec.template.spec.containers[0].image.
	Path string
}

// An InvalidError has the faults of a custom resource: their paths are those of its fields, and their positions the lines of
// the package that forbid them.
type InvalidError struct{ Faults fault.Faults }

// Error returns one fault a line.
func (e *InvalidError) Error() string { return e.Faults.Error() }

// Unwrap returns the faults.
func (e *InvalidError) Unwrap() error { return e.Faults }

// Ask answers a question about what a package renders. It errors with an InvalidError if the resource is wrong, and with
// Faults if the package or the question is.
func Ask(ctx context.Context, p *program.Program, in render.Input, q Question) (Answer, error) {
	path, err := parse(q.Path)
	if err != nil {
		return Answer{}, err
	}
	out, err := render.Render(ctx, p, in)
	if err != nil {
		return Answer{}, err
	}
	if len(out.Invalid) > 0 {
		return Answer{}, &InvalidError{out.Invalid}
	}
	if len(out.Rollout.Components) == 0 && len(out.Faults) > 0 {
		return Answer{}, out.Faults
	}
	a := asking{program: p, out: out, in: in, path: path, text: q.Path, mask: &diff.Mask{}, lines: lines(p)}
	a.learn()
	if a.of, err = find(out, q.Object); err != nil {
		return Answer{}, err
	}
	return a.answer()
}

// parse returns the parts of a path. It errors if any of it cannot be read.
func parse(path string) ([]fieldpath.Part, error) {
	parts := fieldpath.Parse(path)
	read := pathText(parts)
	for i, p := range parts {
		if e := p.Element; len(e) > 1 && e[0] == '"' && e[len(e)-1] == '"' {
			parts[i].Element = e[1 : len(e)-1]
		}
	}
	if strings.TrimPrefix(read, ".") != strings.TrimPrefix(path, ".") {
		return nil, fault.Faults{{Message: fmt.Sprintf("%s: this is no path of a field", path), Hint: `write one such as .spec.containers[0].image or .metadata.labels["app.kubernetes.io/name"]`}}
	}
	return parts, nil
}

// An ownObject is an object that the package renders.
type ownObject struct {
	component program.Component
	object    program.Object
}

func (o ownObject) String() string {
	if o.object.Identity.Name == "" {
		return o.component.Name + "." + o.object.Name
	}
	return strings.ToLower(o.object.Identity.Kind) + "/" + o.object.Identity.Name
}

// find returns the object that a text means.
func find(out render.Output, text string) (ownObject, error) {
	var all, found []ownObject
	for _, c := range out.Rollout.Components {
		for _, o := range c.Objects {
			own := ownObject{c, o}
			all = append(all, own)
			if render.IsNamed(text, c.Name, o) {
				found = append(found, own)
			}
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	among := all
	message := "the package renders no object " + text + " for this resource"
	if len(found) > 1 {
		among, message = found, fmt.Sprintf("%s means %d objects", text, len(found))
	}
	var names []string
	for _, o := range among {
		name := o.String()
		if len(found) > 1 && strings.Contains(text, "/") {
			name = o.component.Name + "." + o.object.Name
		}
		names = append(names, name)
	}
	switch {
	case len(out.Rollout.Components) == 0:
		return ownObject{}, fault.Faults{{Message: message, Hint: "it has no components"}}
	case len(among) == 0:
		return ownObject{}, fault.Faults{{Message: message, Hint: "it renders no object at all"}}
	}
	return ownObject{}, fault.Faults{{Message: message, Hint: program.HintAmong(text, names)}}
}

// asking answers one question.
type asking struct {
	program *program.Program
	out     render.Output
	in      render.Input
	of      ownObject
	path    []fieldpath.Part
	text    string
	mask    *diff.Mask
	lines   map[string][]string
	secret  bool
}

// learn teaches the mask the Secrets that were given and rendered.
func (a *asking) learn() {
	for _, m := range a.in.Manifests {
		a.mask.Learn(&unstructured.Unstructured{Object: m})
	}
	for _, objects := range a.out.Evaluated.Live {
		for _, o := range objects {
			a.mask.Learn(&unstructured.Unstructured{Object: o})
		}
	}
	for _, c := range a.out.Rollout.Components {
		for _, o := range c.Objects {
			a.mask.Learn(&unstructured.Unstructured{Object: o.Manifest})
		}
	}
}

func (a *asking) answer() (Answer, error) {
	c, o := a.of.component, a.of.object
	ref := o.Identity
	origins, asText, err := a.origins()
	if err != nil {
		return Answer{}, err
	}
	live := a.live(ref)
	out := Answer{
		APIVersion: ref.GroupVersion().String(), Kind: ref.Kind, Name: ref.Name, Namespace: ref.Namespace, Component: c.Name, Object: o.Name, Path: a.text,
		Written: origins.Exists(), Notes: a.notes(),
	}
	a.secret = object.MayBeSecret(ref.Kind) && (len(a.path) == 0 || slices.Contains(secretFields, a.path[0].Name()))
	a.secret = a.secret || origins.Secret
	out.Secret = a.secret
	stored, path := a.stored()
	value, rendered := fieldpath.Lookup(stored, path)
	if rendered {
		out.Written, out.Value = true, a.shown(value)
	}
	if asText {
		out.Notes = append(out.Notes, storedAs)
	}
	if live != nil {
		out.Namespace = live.GetNamespace()
		out.Live = a.inCluster(live, stored, path)
	}
	if !out.Written && (out.Live == nil || !out.Live.Exists) {
		return Answer{}, a.unknown(origins, live)
	}
	if !rendered && out.Written {
		out.Notes = append(out.Notes, a.masked(c.Missing)...)
	}
	if origins.Cut {
		out.Notes = append(out.Notes, "it is made of more than is listed here")
	}
	for _, at := range origins.Places {
		out.Lines = append(out.Lines, a.line(at))
	}
	for _, s := range origins.Sources {
		out.Sources = append(out.Sources, a.source(s))
	}
	return out, nil
}

// live returns the object as it was given, or nil.
func (a *asking) live(ref object.Ref) *unstructured.Unstructured {
	for _, c := range a.out.Components {
		for _, d := range c.Objects {
			if c.Name == a.of.component.Name && d.Object == a.of.object.Name {
				ref = d.Ref()
			}
		}
	}
	for _, m := range a.in.Manifests {
		u := &unstructured.Unstructured{Object: m}
		if u.GetResourceVersion() != "" && u.GroupVersionKind().GroupKind() == ref.GroupKind() && u.GetName() == ref.Name &&
			(ref.Namespace == "" || u.GetNamespace() == ref.Namespace) {
			return withoutCopies(u)
		}
	}
	return nil
}

// withoutCopies returns an object without the annotations that hold content of a Secret, or its key.
func withoutCopies(u *unstructured.Unstructured) *unstructured.Unstructured {
	annotations := u.GetAnnotations()
	if !object.MayBeSecret(u.GetKind()) || len(annotations) == 0 {
		return u
	}
	for _, name := range []string{corev1.LastAppliedConfigAnnotation, program.SaltAnnotation} {
		if _, has := annotations[name]; has {
			annotations[name] = redact.Mask
		}
	}
	out := u.DeepCopy()
	out.SetAnnotations(annotations)
	return out
}

// notes say how far the component is, if it is not applied.
func (a *asking) notes() []string {
	for _, c := range a.out.Components {
		if c.Name != a.of.component.Name || c.State == status.Verified || c.State == status.Applied || c.Reason == status.ReasonDependency {
			continue
		}
		note := "component " + c.Name + " is " + string(c.State)
		if c.Message != "" {
			note += ": " + c.Message
		}
		return a.masked([]string{note})
	}
	return nil
}

func (a *asking) masked(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = a.mask.Text(a.out.Redactor.Text(t))
	}
	return out
}

// inCluster says what a live object has at a path, where the package renders another one.
func (a *asking) inCluster(live *unstructured.Unstructured, stored map[string]any, path []fieldpath.Part) *Live {
	wanted, written := fieldpath.Lookup(stored, path)
	path = aligned(live, stored, path)
	value, exists := fieldpath.Lookup(live.Object, path)
	out := &Live{Exists: exists, Owners: owners(live, path)}
	if exists && len(path) > 0 {
		out.Value = a.shown(value)
	}
	own := slices.ContainsFunc(out.Owners, func(o Owner) bool { return o.Manager == cluster.FieldManager && o.Operation == "Apply" && !o.Parts })
	same := exists && (covers(value, wanted) || own && sameQuantity(value, wanted))
	out.Differs = written && !same
	return out
}

// sameQuantity reports whether two texts are the same quantity: an API server writes 1024Mi as 1Gi.
func sameQuantity(a, b any) bool {
	x, errX := resource.ParseQuantity(fmt.Sprint(a))
	y, errY := resource.ParseQuantity(fmt.Sprint(b))
	return errX == nil && errY == nil && x.Cmp(y) == 0
}

// covers reports whether a value has all that another one has.
func covers(value, wanted any) bool {
	w, isMap := wanted.(map[string]any)
	v, both := value.(map[string]any)
	if !isMap || !both {
		return object.Equal(value, wanted) || coversAll(value, wanted)
	}
	for k := range w {
		if !covers(v[k], w[k]) {
			return false
		}
	}
	return true
}

// coversAll is covers for the items of lists.
func coversAll(value, wanted any) bool {
	w, isList := wanted.([]any)
	v, both := value.([]any)
	if !isList || !both || len(v) < len(w) {
		return false
	}
	for i := range w {
		if !slices.ContainsFunc(v, func(item any) bool { return covers(item, w[i]) }) {
			return false
		}
	}
	return true
}

// unknown is the error about a path that neither the package nor the cluster has.
func (a *asking) unknown(o program.Origins, live *unstructured.Unstructured) error {
	names, depth := o.Fields, o.Found
	if live != nil {
		value, below := any(live.Object), 0
		for ; below < len(a.path); below++ {
			next, ok := a.path[below].Lookup(value)
			if !ok {
				break
			}
			value = next
		}
		if below > depth {
			names, depth = nil, below
		}
		if below == depth {
			names = append(names, namesIn(value)...)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	at, wrong := pathText(a.path[:depth]), a.path[min(depth, len(a.path)-1)]
	f := fault.Fault{Message: a.mask.Text(fmt.Sprintf("%s has no field %s", a.of, a.text))}
	switch hint := program.HintAmong(wrong.Name(), names); {
	case hint != "" && at != "":
		f.Hint = a.mask.Text("in " + at + ", " + hint)
	case hint != "":
		f.Hint = hint
	case at != "":
		f.Hint = at + " has no fields"
	}
	return fault.Faults{f}
}

// namesIn returns the names of the fields of a value.
func namesIn(value any) []string {
	var out []string
	switch v := value.(type) {
	case map[string]any:
		for k := range v {
			out = append(out, k)
		}
	case []any:
		for i, item := range v {
			index := fmt.Sprintf("[%d]", i)
			if m, _ := item.(map[string]any); m["name"] != nil {
				index = fmt.Sprintf("[name=%q]", fmt.Sprint(m["name"]))
			}
			out = append(out, index)
		}
	}
	return out
}

// pathText returns a path as text.
func pathText(path []fieldpath.Part) string {
	var b strings.Builder
	for _, p := range path {
		if p.Field != "" {
			b.WriteString("." + p.Field)
		} else {
			b.WriteString("[" + p.Element + "]")
		}
	}
	return b.String()
}
