package program

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/fieldpath"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program/syntax"
)

// Origins are where the value of a field of an object comes from.
type Origins struct {
	// Places are the lines of the package that it is written in, and then those that these refer to.
	Places []fault.Position
	// Sources are the values from outside the package that it is made of.
	Sources []Source
	// Cut says that there are more than are listed, and Secret that these may be content of a Secret.
	Cut, Secret bool
	// Found is how many parts of the path there are, and Fields are the names below these, if there are more.
	Found  int
	Fields []string
}

// Exists reports whether the package writes the field.
func (o Origins) Exists() bool { return len(o.Places) > 0 }

// A Source is a value from outside the package: a field of the custom resource, of a live object, of an
// input or of the configuration.
type Source struct {
	// Path is as the package writes it, such as cr.spec.image. A * stands for all elements.
	Path []string
	// Reference is the line that refers to it.
	Reference fault.Position
	// Object is the live object or the input.
	Object string
	// Given says that somebody has set it. By is who has set a field of the configuration.
	Given bool
	By    string
	// Value is the value, which may be the default; nil is none.
	Value any
	// Default is the default in the schema of the custom resource; nil is none.
	Default any
	// Schema are the lines that declare it, for fields of the custom resource and of the configuration.
	Schema []fault.Position
	// Secret says that it is content of a Secret, or is made into one.
	Secret bool
}

// Origins returns where the value of a field of an object comes from. r is what the session came to.
//
// It evaluates the package, which costs as much as a reconcile.
func (p *Program) Origins(s Session, r Rollout, component, object string, path []fieldpath.Part) (out Origins, err error) {
	defer func() {
		if cause := recover(); cause != nil { // as Evaluate does: see recovered
			out, err = Origins{}, &PanicError{Package: p.name, Cause: cause}
		}
	}()
	root := p.compiled.fill(p.views.filling(s))
	v := root.LookupPath(cue.MakePath(cue.Str("components"), cue.Str(component), cue.Str("objects"), cue.Str(object)))
	for depth, part := range path {
		next := partOf(v, part)
		if !next.Exists() {
			return Origins{Found: depth, Fields: namesIn(v)}, nil
		}
		v = next
	}
	o := origins{Program: p, root: root, session: s, secret: p.secrets.spec(r)}
	o.content = p.index.MadeOf(o.contentOfSecrets(), o.sourcesAt)
	made := p.index.MadeOf(writtenBy(v), o.sourcesAt)
	out = Origins{Places: made.Places, Cut: made.Cut, Found: len(path)}
	for _, ref := range made.External {
		out.Sources = append(out.Sources, o.source(ref))
	}
	// What is not known counts as secret if there is anything that is.
	out.Secret = slices.ContainsFunc(out.Sources, func(s Source) bool { return s.Secret }) ||
		out.Cut && (len(o.secret) > 0 || len(s.secrets()) > 0) || o.shows(made, out.Sources)
	return out, nil
}

// namesIn returns the names of the fields of a value, or the items of a list, by their names if they have any.
func namesIn(v cue.Value) []string {
	var out []string
	if items, err := v.List(); err == nil {
		for i := 0; items.Next(); i++ {
			index := fmt.Sprintf("[%d]", i)
			if name, err := Lookup(items.Value(), "name").String(); err == nil {
				index = fmt.Sprintf("[name=%q]", name)
			}
			out = append(out, index)
		}
		return out
	}
	for name := range fields(v) {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// writtenBy returns the nodes in the author's files that a value comes from.
func writtenBy(v cue.Value) []ast.Node {
	var out []ast.Node
	for _, n := range sourcesOf(v) {
		if at := fault.PositionAt(n.Pos()); at.File != "" && !at.IsContract() && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// origins finds where values of one evaluation come from.
type origins struct {
	*Program
	root    cue.Value
	session Session
	// secret are the fields of the custom resource that Secrets are made of.
	secret [][]string
	// content is what the content of all rendered Secrets is made of.
	content syntax.Made
}

// sourcesAt returns the nodes that the evaluation used for a field of the package.
func (o origins) sourcesAt(path []string) []ast.Node {
	v := o.root
	for _, name := range path {
		next := v.LookupPath(cue.MakePath(syntax.Selector(name)))
		if !next.Exists() {
			next = hiddenField(v, name)
		}
		if !next.Exists() {
			return nil
		}
		v = next
	}
	return writtenBy(v)
}

// hiddenField returns a field whose selector needs to know the package: a hidden one.
func hiddenField(v cue.Value, name string) cue.Value {
	if !strings.HasPrefix(name, "_") {
		return cue.Value{}
	}
	it, err := v.Fields(cue.Hidden(true))
	for err == nil && it.Next() {
		if it.Selector().String() == name {
			return it.Value()
		}
	}
	return cue.Value{}
}

// known returns the beginning of a path that says exactly which field it is.
func known(path []string) []string {
	names := slices.DeleteFunc(slices.Clone(path), func(n string) bool { return n == "" })
	if at := slices.Index(names, syntax.Each); at >= 0 {
		names = names[:at]
	}
	return names
}

// source returns what is known of a value from outside the package.
func (o origins) source(ref syntax.Reference) Source {
	out := Source{Path: ref.Path, Reference: ref.Position}
	names := known(ref.Path)
	if v := Lookup(o.root, names...); v.Exists() {
		if value, err := data(v); err == nil {
			out.Value = elements(value, ref.Path[len(names):])
		}
	}
	switch names[0] {
	case "cr":
		out.Given = has(o.session.CR, names[1:])
		out.Schema, out.Default = o.declared(ref.Path)
		if len(names) < len(ref.Path) {
			out.Default = nil // each element has its own
		}
		out.Secret = slices.ContainsFunc(o.secret, func(s []string) bool { return within(names, s) || within(s, names) })
	case "config":
		for _, l := range o.session.Config {
			if has(l.Values, names[1:]) {
				out.Given, out.By = true, l.Origin
			}
		}
		out.Schema = authored(Lookup(o.root, names...))
		out.Secret = slices.ContainsFunc(o.content.External, func(r syntax.Reference) bool {
			return within(names, known(r.Path)) || within(known(r.Path), names)
		})
	case "live", "inputs":
		o.observed(&out, names)
	}
	return out
}

// elements returns what is at a path below a value. Where the path goes on below all elements of a list or a map, that is
// a map with what each of them has.
func elements(value any, path []string) any {
	for i, name := range path {
		if name == syntax.Each {
			return ofEach(value, path[i+1:])
		}
		m, _ := value.(map[string]any)
		if value = m[name]; value == nil {
			return nil
		}
	}
	return value
}

// ofEach is elements for all elements of a list or a map.
func ofEach(value any, path []string) any {
	if len(path) == 0 {
		return value
	}
	out := map[string]any{}
	add := func(key string, element any) {
		if below := elements(element, path); below != nil {
			out[key] = below
		}
	}
	switch value := value.(type) {
	case map[string]any:
		for key, element := range value {
			add(key, element)
		}
	case []any:
		for i, element := range value {
			add(strconv.Itoa(i), element)
		}
	}
	return out
}

// observed completes the source of a live object or an input.
func (o origins) observed(out *Source, names []string) {
	var content map[string]any
	below := names
	switch {
	case names[0] == "live" && len(names) > 2:
		content, below = o.session.Live[names[1]][names[2]], names[3:]
	case names[0] == "inputs" && len(names) > 1:
		below = names[min(3, len(names)):]
		for _, found := range o.session.Inputs[names[1]].Objects {
			if u := (&unstructured.Unstructured{Object: found}); len(names) < 4 || names[2] == "object" || u.GetName() == names[3] {
				content = found
			}
		}
		if len(names) > 2 && names[2] == "objects" {
			below = names[min(4, len(names)):]
		}
	}
	u := unstructured.Unstructured{Object: content}
	if content != nil {
		out.Object = u.GetKind() + "/" + u.GetName()
		out.Given = has(content, below)
	}
	out.Secret = object.MayBeSecretIn(content) && (len(below) == 0 || slices.Contains(secretFields, below[0]))
}

// declared returns the lines that declare a field of the spec, and its default.
func (o origins) declared(names []string) ([]fault.Position, any) {
	if len(names) < 2 || names[1] != "spec" {
		return nil, nil
	}
	v := o.meta.stored().Spec
	for _, name := range names[2:] {
		next := cue.Value{}
		for _, sel := range selectors(name) {
			if next = v.LookupPath(cue.MakePath(sel)); next.Exists() {
				break
			}
		}
		if !next.Exists() {
			return authored(v), nil
		}
		v = next
	}
	// Of a struct, each field has its own.
	if v.IncompleteKind() == cue.StructKind {
		return authored(v), nil
	}
	byDefault, err := data(v)
	if err != nil {
		byDefault = nil
	}
	return authored(v), byDefault
}

// selectors are those that may lead to a field of a schema, or to its elements.
func selectors(name string) []cue.Selector {
	if name == syntax.Each {
		return []cue.Selector{cue.AnyString, cue.AnyIndex}
	}
	return []cue.Selector{cue.Str(name), cue.Str(name).Required(), cue.Str(name).Optional(), cue.AnyString}
}

// has reports whether data has something at a path.
func has(object map[string]any, path []string) bool {
	_, ok, err := unstructured.NestedFieldNoCopy(object, path...)
	return ok && err == nil
}

// within reports whether one path begins with another.
func within(path, of []string) bool { return len(path) >= len(of) && slices.Equal(path[:len(of)], of) }
