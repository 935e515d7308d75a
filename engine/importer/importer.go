package importer

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"cuelang.org/go/cue/format"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"operetta.dev/engine/scaffold"
	"operetta.dev/engine/source"
	"sigs.k8s.io/yaml"
)

// Options say what the package is.
type Options struct {
	Package scaffold.Package
	// Release is a name in the objects that stands for the name of the custom resource, such as that of a release of
	// Helm, so that there can be several resources in a namespace. It is replaced where it is a word of its own.
	Release string
	// API is the kind of a CustomResourceDefinition among the objects that becomes the kind of the package, or "". The
	// group and kind of Package then count for nothing.
	API string
	// Secrets are imported with their content, which then stands in the package for everybody to read.
	Secrets bool
}

// A Result is an imported package.
type Result struct {
	// Files are the package, its tests and a sample, in a folder of the package's name.
	Files []scaffold.File
	// Notes are what a person should know.
	Notes []string
	// Objects are how many objects it renders, and Components how many components it has.
	Objects, Components int
}

// Import returns a package that renders the given objects. It errors with a RefusedError that has the reasons if it
// cannot.
func Import(ctx context.Context, given []Object, o Options) (Result, error) {
	if err := o.Package.Check(); err != nil {
		return Result{}, err
	}
	if len(given) == 1 && isGraph(given[0]) {
		return importGraph(ctx, given[0], o)
	}
	objects, notes, err := read(given)
	if err != nil {
		return Result{}, err
	}
	i := &importing{Options: o, emitter: newEmitter(o.Release), notes: notes, version: "v1"}
	if objects, err = i.takeAPI(objects); err != nil {
		return Result{}, err
	}
	if len(objects) == 0 && i.api == nil {
		return Result{}, &RefusedError{[]string{"there is no object to import"}}
	}
	if err := i.secrets(objects); err != nil {
		return Result{}, err
	}
	objects = i.namespace(i.withoutOtherHooks(objects))
	i.wanted = snapshotOf(objects)
	i.followNamespace(objects)
	i.components = components(objects, i.short)
	if i.api == nil { // a schema that was imported stays as it is
		i.parameters = lift(i.components, i.short)
	}
	i.noteAutoscalers()
	files, err := i.files(objects)
	if err != nil {
		return Result{}, err
	}
	if err := i.compare(ctx, files); err != nil {
		return Result{}, err
	}
	sample, err := yaml.Marshal(i.sample())
	if err != nil {
		return Result{}, err
	}
	files = append(files, scaffold.File{Path: path.Join(o.Package.Name, "sample.yaml"), Content: sample})
	return Result{Files: files, Notes: i.notes, Objects: len(objects), Components: len(i.components)}, nil
}

// An importing is one import.
type importing struct {
	Options

	emitter *emitter
	// api is the definition that becomes the kind of the package, or nil, and version the version of the kind.
	api        *api
	version    string
	components []component
	parameters []parameter
	notes      []string
	// sampleNamespace is the namespace of the sample resource, and simplest its spec if the schema was imported.
	sampleNamespace string
	simplest        any
	// moved is true if the objects are in the namespace of the resource.
	moved bool
	// wanted are the objects as they have to be rendered.
	wanted []map[string]any
}

// takeAPI takes the definition that becomes the kind of the package out of the objects, if one does.
func (i *importing) takeAPI(objects []*object) ([]*object, error) {
	if i.API == "" {
		return objects, nil
	}
	a, rest, err := takeAPI(objects, i.API)
	if err != nil {
		return nil, err
	}
	i.api, i.version = a, a.version.Name
	i.Package.Group, i.Package.Kind = a.definition.Spec.Group, a.definition.Spec.Names.Kind
	if _, has := a.version.Schema.OpenAPIV3Schema.Properties["status"]; has {
		i.notes = append(i.notes, a.at+": the schema of the status is left out: the package has one of its own")
	}
	for _, note := range notKept("spec", a.spec()) {
		i.notes = append(i.notes, a.at+": "+note)
	}
	return rest, nil
}

// secrets refuses Secrets with content, unless they were asked for: who may read the package could read them.
func (i *importing) secrets(objects []*object) error {
	var found []string
	for _, o := range objects {
		if o.isSecret() {
			found = append(found, fmt.Sprintf("%s: its content would stand in the package; refer to it as an input, or import it with --secrets", o))
		}
	}
	if len(found) > 0 && !i.Secrets {
		return &RefusedError{found}
	}
	return nil
}

// noteAutoscalers notes the workloads whose replicas the package and an autoscaler would both set.
func (i *importing) noteAutoscalers() {
	for _, c := range i.components {
		scaled := slices.ContainsFunc(c.objects, func(o *object) bool { return o.groupKind() == autoscalerKind })
		spec, _ := c.objects[0].Object["spec"].(map[string]any)
		if scaled && spec["replicas"] != nil {
			i.notes = append(i.notes, fmt.Sprintf("%s has replicas and an autoscaler: remove the line with replicas from component %s, so that the autoscaler decides", c.objects[0], c.name))
		}
	}
}

// withoutOtherHooks leaves out what a chart runs when it is removed, taken back or tested: a package would run it at once.
func (i *importing) withoutOtherHooks(objects []*object) []*object {
	return slices.DeleteFunc(objects, func(o *object) bool {
		if !o.installs() {
			i.notes = append(i.notes, fmt.Sprintf("%s is left out: the chart runs it at %s; what runs before a deletion is written as hooks: beforeDelete", o, strings.Join(o.hooks(), ", ")))
		}
		return !o.installs()
	})
}

// followNamespace lets references to the namespace of the objects be to that of the resource, where an API server reads a
// namespace, and notes where else it is named.
func (i *importing) followNamespace(objects []*object) {
	if !i.moved {
		return
	}
	for _, o := range objects {
		walk(o.Object, nil, func(at []string, value any) any {
			text, isText := value.(string)
			switch {
			case !isText || !mentions(text, i.sampleNamespace):
			case text == i.sampleNamespace && isNamespaceReference(at):
				return reference("cr.metadata.namespace")
			default:
				i.notes = append(i.notes, fmt.Sprintf("%s: %s names the namespace %s, also for a resource in another one", o, strings.Join(at, "."), i.sampleNamespace))
			}
			return value
		})
	}
}

// namespace lets the objects live in the namespace of the resource, if all of them that name one are in the same. It
// returns them without that namespace itself: the resource is in it, so that it has to exist before.
func (i *importing) namespace(objects []*object) []*object {
	found := namespaces(objects)
	i.sampleNamespace = "default"
	if len(found) != 1 {
		if len(found) > 1 {
			i.notes = append(i.notes, "the objects are in several namespaces, so that they keep theirs: "+strings.Join(found, ", "))
		}
		return objects
	}
	i.sampleNamespace, i.moved = found[0], true
	i.notes = append(i.notes, fmt.Sprintf("the objects are in the namespace of the resource; that of the sample is %s", found[0]))
	return slices.DeleteFunc(objects, func(o *object) bool {
		o.SetNamespace("")
		own := o.groupKind() == "Namespace" && o.GetName() == found[0]
		if own {
			i.notes = append(i.notes, fmt.Sprintf("%s is left out: it has to exist before the resource that is in it", o))
		}
		return own
	})
}

// short returns the name of a workload without that of the release.
func (i *importing) short(name string) string {
	switch {
	case i.Release != "" && name == i.Release:
		return i.Package.Name
	case i.Release != "":
		return strings.TrimPrefix(name, i.Release+"-")
	}
	return name
}

// snapshotOf returns what the objects are before anything in them becomes a reference.
func snapshotOf(objects []*object) []map[string]any {
	var out []map[string]any
	for _, o := range objects {
		out = append(out, o.DeepCopy().Object)
	}
	return out
}

// sampleName is the name of the sample resource.
func (i *importing) sampleName() string {
	if i.Release != "" {
		return i.Release
	}
	return "example"
}

// files returns the files of the package.
func (i *importing) files(objects []*object) ([]scaffold.File, error) {
	name := i.Package.Name
	texts := map[string]string{name + ".cue": i.header(objects)}
	if i.api == nil { // nobody knows what a resource of an imported schema has to have
		texts[name+source.TestSuffix] = i.tests()
	}
	for _, c := range i.components {
		texts[fileOf(c, texts)] = i.component(c)
	}
	var out []scaffold.File
	for _, file := range slices.Sorted(maps.Keys(texts)) {
		text, err := format.Source([]byte(texts[file]))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, scaffold.File{Path: path.Join(name, file), Content: text})
	}
	return out, nil
}

// fileOf returns the name of the file of a component, which is not that of another one, nor one that CUE reads as
// something else.
func fileOf(c component, taken map[string]string) string {
	file := c.name + ".cue"
	if _, is := taken[file]; is || strings.HasSuffix(file, "_test.cue") || strings.HasSuffix(file, "_tool.cue") {
		file = c.name + "_component.cue"
	}
	return file
}

// header returns the file with the schema.
func (i *importing) header(objects []*object) string {
	var b, body strings.Builder
	imports := []string{"operetta.dev/schemas/operator"}
	if i.api != nil {
		imports = append(i.api.header(&body), imports...)
	} else {
		fmt.Fprintf(&body, "group: %q\nkind: %q\nversions: v1: spec: #Spec\ncr: spec: #Spec\nlive: _\n\n", i.Package.Group, i.Package.Kind)
		fmt.Fprintf(&body, "// A %s is what was imported. Without any field it is as it was.\n#Spec: {\n", i.Package.Kind)
		i.spec(&body, nil)
		body.WriteString("}\n")
	}
	fmt.Fprintf(&b, "// Package %s was imported from %s.\npackage %[1]s\n\nimport (\n", i.Package.Name, i.origin(objects))
	for _, path := range imports {
		fmt.Fprintf(&b, "\t%q\n", path)
	}
	b.WriteString(")\n\noperator.#Controller\n\n")
	if reach := reachOf(objects); len(reach) > 0 {
		b.WriteString("// reach are the objects that are not in the namespace of the resource.\nreach: {\n")
		for _, kind := range slices.Sorted(maps.Keys(reach)) {
			fmt.Fprintf(&b, "%s: {", label(kind))
			for n, namespace := range reach[kind] {
				if n > 0 {
					b.WriteString(", ")
				}
				fmt.Fprintf(&b, "namespaces: %q: true", namespace)
			}
			b.WriteString("}\n")
		}
		b.WriteString("}\n\n")
	}
	return b.String() + body.String()
}

// origin says what the package was imported from.
func (i *importing) origin(objects []*object) string {
	const definition, rendered = "a CustomResourceDefinition, whose kind and spec it has", "objects in YAML, which it renders as they were"
	switch {
	case i.api == nil:
		return rendered
	case len(objects) == 0:
		return definition
	}
	return definition + ", and from " + rendered
}

// spec writes the fields of the spec below a path.
func (i *importing) spec(b *strings.Builder, at []string) {
	written := map[string]bool{}
	for _, p := range i.parameters {
		if len(p.path) <= len(at) || !slices.Equal(p.path[:len(at)], at) || written[p.path[len(at)]] {
			continue
		}
		name := p.path[len(at)]
		written[name] = true
		if len(p.path) == len(at)+1 {
			fmt.Fprintf(b, "// %s\n%s: %s | *", p.about, label(name), p.constraint)
			(&emitter{}).value(b, p.value, len(at))
			b.WriteString("\n")
			continue
		}
		about := fmt.Sprintf("%s is about the workload of that name.", name)
		if name == "images" {
			about = "images are those of its containers."
		}
		fmt.Fprintf(b, "// %s\n%s: {\n", about, label(name))
		i.spec(b, append(slices.Clone(at), name))
		b.WriteString("}\n")
	}
}

// component returns the file of a component.
func (i *importing) component(c component) string {
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n\n// %s: %s.\ncomponents: %s: {\n", i.Package.Name, c.name, c.about, label(c.name))
	if len(c.after) > 0 {
		b.WriteString("\tdependsOn: {\n")
		for _, name := range c.after {
			until := fmt.Sprintf("until: %q", c.until)
			if verified[name] {
				until = "{}"
			}
			fmt.Fprintf(&b, "\t\t%s: %s\n", label(name), until)
		}
		b.WriteString("\t}\n")
	}
	b.WriteString("\tobjects: {\n")
	for _, o := range c.objects {
		fmt.Fprintf(&b, "\t\t%s: ", label(o.name))
		i.emitter.value(&b, o.Object, 2)
		b.WriteString("\n")
	}
	b.WriteString("\t}\n}\n")
	return b.String()
}

// tests returns the file with the first tests.
func (i *importing) tests() string {
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n\ntests: {\n\t\"what was imported is rendered, rolled out and removed\": {\n\t\tgiven: cr: {metadata: name: %q, spec: {}}\n\t\twant: objects: {\n", i.Package.Name, i.sampleName())
	for _, c := range i.components {
		for _, o := range c.objects {
			fmt.Fprintf(&b, "%s: %s: {apiVersion: %q, kind: %q}\n", label(c.name), label(o.name), o.GetAPIVersion(), o.GetKind())
		}
	}
	b.WriteString("}\n\t\tsteps: [{want: ready: true}, {delete: true, want: gone: true}]\n\t}\n}\n")
	return b.String()
}

// sample returns a custom resource that renders what was imported.
func (i *importing) sample() map[string]any {
	spec := i.simplest
	if spec == nil {
		spec = map[string]any{}
	}
	metadata := map[string]any{"name": i.sampleName(), "namespace": i.sampleNamespace}
	if i.api != nil && i.api.definition.Spec.Scope == apiextensionsv1.ClusterScoped {
		delete(metadata, "namespace")
	}
	return map[string]any{"apiVersion": i.Package.Group + "/" + i.version, "kind": i.Package.Kind, "metadata": metadata, "spec": spec}
}
