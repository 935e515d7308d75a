package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
	"operetta.dev/engine/vet"
)

// readResource reads what is to be rendered. The custom resource is the only one of the package's kind in the file,
// or the one that --name names. The CustomResourceDefinitions in the file come with it, those in the folder crds of the
// package's module, and the live objects of --live.
func readResource(ctx context.Context, in io.Reader, o renderOptions, args []string, p *program.Program) (document, render.Input, error) {
	var out render.Input
	all, err := readDocuments(ctx, o.file, in)
	if err != nil {
		return document{}, out, err
	}
	dirs, err := expand(args, ".")
	if err != nil {
		return document{}, out, err
	}
	beside, err := vet.ModuleDefinitions(dirs...)
	if err != nil {
		return document{}, out, err
	}
	want := p.GroupVersionKind().GroupKind()
	var found []document
	var names []string
	for _, d := range all {
		if d.kind() == want && (o.name == "" || d.name() == o.name) {
			found = append(found, d)
			names = append(names, d.name())
		}
	}
	switch {
	case len(all) == 0:
		return document{}, out, fmt.Errorf("%s: there is no custom resource in this file, it is empty", shownName(o.file))
	case len(found) == 0:
		return document{}, out, noResource(o, all, p)
	case len(found) > 1:
		return document{}, out, usageError{fmt.Errorf("%s: %d resources of kind %s: %s; choose one with --name", shownName(o.file), len(found), want.Kind, strings.Join(names, ", "))}
	}
	cr := found[0]
	if err := prepareResource(cr, o, p); err != nil {
		return cr, out, err
	}
	out.CR, out.Namespace = cr.object, o.namespace
	out.Manifests = slices.Concat(beside, definitionsIn(all)) // what is given explicitly comes last, and counts
	err = readLiveObjects(ctx, in, o.live, &out)
	return cr, out, err
}

// definitionsIn returns the CustomResourceDefinitions among documents.
func definitionsIn(all []document) []map[string]any {
	var out []map[string]any
	for _, d := range all {
		if _, _, defines := cluster.DefinedBy(d.object); defines {
			out = append(out, d.object)
		}
	}
	return out
}

// noResource returns a fault for each document of a file that has no matching custom resource.
func noResource(o renderOptions, all []document, p *program.Program) error {
	gvk := p.GroupVersionKind()
	wanted := fmt.Sprintf("kind %s in %s", gvk.Kind, gvk.GroupVersion())
	var faults fault.Faults
	for _, d := range all {
		f := fault.Fault{Position: d.position(), Message: fmt.Sprintf("this is %s, but package %s is for %s", d.describe(), p.Name(), wanted)}
		if d.kind() == gvk.GroupKind() {
			f.Message = fmt.Sprintf("this is %s %q, not %q", gvk.Kind, d.name(), o.name)
		}
		faults = append(faults, f)
	}
	return faults
}

// prepareResource checks what the schema of the package does not cover: the version, the name and the
// namespace. It converts a resource of another version to the one that the package reads, as the webhook does.
func prepareResource(d document, o renderOptions, p *program.Program) error {
	meta := p.Meta()
	gv := d.resource().GroupVersionKind().GroupVersion()
	var versions []string
	for _, v := range meta.Versions {
		versions = append(versions, v.Name)
	}
	at := func(path ...string) fault.Fault {
		return fault.Fault{Position: fault.Position{File: d.file, Line: d.lineOf(path...)}, Path: strings.Join(path, ".")}
	}
	if !slices.Contains(versions, gv.Version) {
		f := at("apiVersion")
		f.Message = fmt.Sprintf("package %s has no version %q of %s, only %s", p.Name(), gv.Version, meta.Kind, strings.Join(versions, ", "))
		return fault.Faults{f}
	}
	if d.name() == "" {
		f := at("metadata", "name")
		f.Message, f.Hint = "a custom resource has a name", "write metadata: name: and a name"
		return fault.Faults{f}
	}
	namespace := d.resource().GetNamespace()
	if o.namespace != "" && namespace != "" && namespace != o.namespace {
		f := at("metadata", "namespace")
		f.Message = fmt.Sprintf("the custom resource is in namespace %s, but -n says %s", namespace, o.namespace)
		return fault.Faults{f}
	}
	stored := p.GroupVersionKind().GroupVersion()
	if gv == stored {
		return nil
	}
	spec, err := p.Conversions().Convert(d.object["spec"], gv.Version, stored.Version)
	if err != nil {
		f := at("spec")
		f.Message = fmt.Sprintf("it cannot be converted from %s to %s: %v", gv.Version, stored.Version, err)
		return fault.Faults{f}
	}
	d.object["apiVersion"], d.object["spec"] = stored.String(), spec
	return nil
}

// readLiveObjects reads the live objects of a file. Documents with a kind or apiVersion are manifests;
// others are maps by component and object name.
func readLiveObjects(ctx context.Context, in io.Reader, file string, into *render.Input) error {
	if file == "" {
		return nil
	}
	all, err := readDocuments(ctx, file, in)
	if err != nil {
		return err
	}
	into.Live = map[string]map[string]map[string]any{}
	for _, d := range all {
		if d.object["kind"] != nil || d.object["apiVersion"] != nil {
			into.Manifests = append(into.Manifests, d.object)
			continue
		}
		if err := d.addLiveObjects(into.Live); err != nil {
			return err
		}
	}
	return nil
}

// addLiveObjects adds the objects of a document that is a map by component and object name.
func (d document) addLiveObjects(live map[string]map[string]map[string]any) error {
	const hint = "live objects are written component: {object: {...}}, or as manifests with apiVersion and kind"
	for _, component := range slices.Sorted(maps.Keys(d.object)) {
		objects, ok := d.object[component].(map[string]any)
		if !ok {
			return d.notMapFault(hint, component)
		}
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			object, ok := objects[name].(map[string]any)
			if !ok {
				return d.notMapFault(hint, component, name)
			}
			if live[component] == nil {
				live[component] = map[string]map[string]any{}
			}
			live[component][name] = object
		}
	}
	return nil
}

// notMapFault returns the fault of a field that is not a map.
func (d document) notMapFault(hint string, path ...string) error {
	return fault.Faults{{
		Position: fault.Position{File: d.file, Line: d.lineOf(path...)},
		Path:     strings.Join(path, "."),
		Message:  "not a map",
		Hint:     hint,
	}}
}
