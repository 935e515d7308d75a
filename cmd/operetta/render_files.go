package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/render"
)

// selected returns the objects that are asked for: all, or those of components and objects by their names in the
// package, such as web or web.service. It errors if a name is none, or has nothing to show.
func selected(out render.Output, only []string) ([]render.Object, error) {
	all := out.Objects()
	if len(only) == 0 {
		return all, nil
	}
	wanted := map[string]bool{}
	for _, name := range only {
		found := false
		for _, o := range all {
			if render.IsNamed(name, o.Component, o.Object) {
				wanted[o.Path()], found = true, true
			}
		}
		if !found {
			return nil, unselectable(out, all, name)
		}
	}
	return slices.DeleteFunc(all, func(o render.Object) bool { return !wanted[o.Path()] }), nil
}

// unselectable returns why nothing has a name.
func unselectable(out render.Output, all []render.Object, name string) error {
	component, object, _ := strings.Cut(strings.Replace(name, "/", ".", 1), ".")
	var components, objects []string
	for _, c := range out.Components {
		components = append(components, c.Name)
	}
	for _, o := range all {
		if o.Component == component {
			objects = append(objects, o.Component+"."+o.Name)
		}
	}
	f := fault.Fault{Message: fmt.Sprintf("--only %s: component %s renders nothing for this resource now", name, component)}
	switch {
	case !slices.Contains(components, component):
		f.Message, f.Hint = fmt.Sprintf("--only %s: the package has no component %s", name, component), "there are "+strings.Join(components, ", ")
	case object != "" && len(objects) > 0:
		f.Message, f.Hint = fmt.Sprintf("--only %s: component %s has no object %s now", name, component, object), "there are "+strings.Join(objects, ", ")
	}
	return fault.Faults{f}
}

// writeManifests writes each object to a file of its own in a new or empty folder. The names sort in the order in
// which the objects would be applied. It errors if there are files already, whose objects would be taken for these.
// They come when all have been written, or none does.
func writeManifests(dir, format string, manifests []manifest) (err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	case len(entries) > 0:
		return fmt.Errorf("--output-dir %s: the folder has files, such as %s; name one that is new or empty", dir, entries[0].Name())
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	draft, err := os.MkdirTemp(dir, ".draft-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(draft)) }()
	width, names := len(fmt.Sprint(len(manifests))), make([]string, len(manifests))
	for i, m := range manifests {
		names[i] = fmt.Sprintf("%0*d-%s.%s", width, i+1, fileName(m), format)
		if err := writeManifest(filepath.Join(draft, names[i]), format, m); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(draft, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// fileName returns a name for the file of an object: its kind and name, as far as a file may have that name.
func fileName(m manifest) string {
	kind, _ := m.object["kind"].(string)
	metadata, _ := m.object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	const longest = 200
	text := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '-' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z') {
			return r
		}
		return '-'
	}, strings.ToLower(kind+"-"+name))
	return text[:min(len(text), longest)]
}

// writeManifest writes an object to a file that is not there yet. Only its owner may read it: it may be a Secret.
func writeManifest(file, format string, m manifest) (err error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if format == formatJSON {
		return printJSON(f, m.object)
	}
	return printManifests(f, format, []manifest{m})
}
