package importer

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/literal"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/scaffold"
)

// graphKind is the kind of a ResourceGraphDefinition of kro.
const graphKind = "ResourceGraphDefinition.kro.run"

// isGraph reports whether an object is a ResourceGraphDefinition.
func isGraph(o Object) bool {
	u := &unstructured.Unstructured{Object: o.Manifest}
	return u.GroupVersionKind().GroupKind().String() == graphKind
}

// A graphImport is the import of a ResourceGraphDefinition.
type graphImport struct {
	name  string
	at    string
	cel   *celWriter
	spec  simpleSchema
	parts []string
	// reasons say what cannot be imported.
	reasons []string
	objects int
	// secrets are imported with their content.
	secrets bool
}

// importGraph returns a package for a ResourceGraphDefinition: its schema, a component for each of its resources, and an
// input for each external one. It errors with a RefusedError for what has no counterpart.
func importGraph(ctx context.Context, given Object, o Options) (Result, error) {
	required := map[string]bool{}
	for {
		g := newGraphImport(given, o, required)
		file, err := g.file(given, o)
		if err != nil {
			return Result{}, err
		}
		out, err := g.try(ctx, file)
		if err != nil {
			return Result{}, err
		}
		if g.spec.require(out.unset) { // each turn requires one field more of those that there are
			continue
		}
		if out.wrong != nil {
			return Result{}, out.wrong
		}
		return Result{
			Files: []scaffold.File{file, {Path: path.Join(g.name, "sample.yaml"), Content: out.sample}}, Objects: g.objects, Components: g.objects,
			Notes: append([]string{"a resource without readyWhen is healthy as its kind is, and not already when it exists"}, g.requiredNotes()...),
		}, nil
	}
}

// newGraphImport returns the import of a definition in which some fields of the schema are required beyond those that it
// says.
func newGraphImport(given Object, o Options, required map[string]bool) *graphImport {
	return &graphImport{
		name: o.Package.Name, at: given.At, secrets: o.Secrets, cel: &celWriter{roots: map[string]string{"schema": "cr"}, imports: map[string]bool{}},
		spec: simpleSchema{imports: map[string]bool{}, required: required, optional: map[string]bool{}},
	}
}

// file returns the file of the package. It errors with a RefusedError for what has no counterpart.
func (g *graphImport) file(given Object, o Options) (scaffold.File, error) {
	schema, _, _ := unstructured.NestedMap(given.Manifest, "spec", "schema")
	resources, _, _ := unstructured.NestedSlice(given.Manifest, "spec", "resources")
	if o.Release != "" {
		g.refusef("metadata.name", "a ResourceGraphDefinition names its objects itself, so that there is no --release in it")
	}
	if o.API != "" {
		g.refusef("spec.schema", "a ResourceGraphDefinition has the schema of its kind itself, so that there is no --api")
	}
	g.learn(resources)
	header := g.header(schema, o.Package)
	for i, r := range resources {
		resource, _ := r.(map[string]any)
		g.resource(fmt.Sprintf("spec.resources[%d]", i), resource)
	}
	if len(g.reasons) > 0 {
		return scaffold.File{}, &RefusedError{g.reasons[:min(len(g.reasons), maxReasons)]}
	}
	text, err := format.Source([]byte(g.imports() + header + strings.Join(g.parts, "\n")))
	if err != nil {
		return scaffold.File{}, fmt.Errorf("%s: %w", g.at, err)
	}
	return scaffold.File{Path: path.Join(g.name, g.name+".cue"), Content: text}, nil
}

// refusef notes that something cannot be imported.
func (g *graphImport) refusef(path, format string, args ...any) {
	g.reasons = append(g.reasons, g.at+": "+path+": "+fmt.Sprintf(format, args...))
}

// learn notes what the names of resources stand for.
func (g *graphImport) learn(resources []any) {
	for _, r := range resources {
		resource, _ := r.(map[string]any)
		id, _ := resource["id"].(string)
		template, _ := resource["template"].(map[string]any)
		switch {
		case !word.MatchString(id):
		case resource["externalRef"] != nil:
			g.cel.roots[id] = "inputs." + label(id) + ".object"
		default:
			g.cel.roots[id] = "live." + label(id) + "." + objectOf(template)
		}
	}
}

// objectOf returns the name of the object of a resource: its kind.
func objectOf(template map[string]any) string {
	kind := unquoted(template["kind"])
	return label(identifier(strings.ToLower(kind), map[string]bool{}))
}

// imports returns the beginning of the file.
func (g *graphImport) imports() string {
	needed := maps.Clone(g.cel.imports)
	maps.Copy(needed, g.spec.imports)
	var b strings.Builder
	fmt.Fprintf(&b, "// Package %s was imported from a ResourceGraphDefinition.\npackage %[1]s\n\nimport (\n", g.name)
	for _, name := range append(slices.Sorted(maps.Keys(needed)), "operetta.dev/schemas/operator") {
		fmt.Fprintf(&b, "\t%q\n", name)
	}
	b.WriteString(")\n\n")
	return b.String()
}

// header returns the kind, the schema and the status.
func (g *graphImport) header(schema map[string]any, p scaffold.Package) string {
	text := func(field, other string) string {
		if v, _ := schema[field].(string); v != "" {
			return v
		}
		return other
	}
	spec, _ := schema["spec"].(map[string]any)
	types, _ := schema["types"].(map[string]any)
	g.spec.types = types
	g.spec.fields("", spec, 0)
	for _, r := range g.spec.reasons {
		g.reasons = append(g.reasons, g.at+": "+r)
	}
	var b strings.Builder
	quote, version := literal.String.Quote, text("apiVersion", "v1alpha1")
	if !versionName.MatchString(version) {
		g.refusef("spec.schema.apiVersion", "%q is no version that a package can have", version)
	}
	fmt.Fprintf(&b, "operator.#Controller\n\ngroup: %s\nkind: %s\nversions: %s: spec: #Spec\ncr: spec: #Spec\nlive: _\n\n", quote(text("group", "kro.run")), quote(text("kind", p.Kind)), label(version))
	fmt.Fprintf(&b, "// %s is as in the definition that was imported.\n#Spec: {\n%s", inComment(text("kind", p.Kind)), g.spec.b.String())
	if rules, _ := schema["validation"].([]any); len(rules) > 0 {
		g.refusef("spec.schema.validation", "has to be written by hand, as a constraint or as @crd(rule=...)")
	}
	b.WriteString("}\n\n")
	if status, _ := schema["status"].(map[string]any); len(status) > 0 {
		b.WriteString("status: ")
		(&emitter{}).value(&b, g.translated("spec.schema.status", status), 0)
		b.WriteString("\n\n")
	}
	return b.String()
}

// resource adds the component of a resource, or the input of an external one.
func (g *graphImport) resource(at string, r map[string]any) {
	id, _ := r["id"].(string)
	if !word.MatchString(id) {
		g.refusef(at, "its id %q is no name", id)
		return
	}
	for _, field := range slices.Sorted(maps.Keys(r)) {
		if !slices.Contains([]string{"id", "template", "externalRef", "readyWhen", "includeWhen"}, field) {
			g.refusef(at+"."+field, "has to be written by hand; a loop in components makes one for each element")
		}
	}
	if external, is := r["externalRef"].(map[string]any); is {
		g.external(at, id, external)
		return
	}
	template, _ := r["template"].(map[string]any)
	g.objects++
	g.refuseSecret(at+".template", template)
	var b strings.Builder
	fmt.Fprintf(&b, "components: %s: {\n", label(id))
	if when := g.conditions(at+".includeWhen", r["includeWhen"]); len(when) > 0 {
		fmt.Fprintf(&b, "when: %s\n", strings.Join(when, " && "))
	}
	fmt.Fprintf(&b, "objects: %s: ", objectOf(template))
	(&emitter{}).value(&b, g.translated(at+".template", template), 0)
	b.WriteString("\n")
	for i, condition := range g.conditions(at+".readyWhen", r["readyWhen"]) {
		fmt.Fprintf(&b, "verify: ready%d: %s\n", i, condition)
	}
	b.WriteString("}\n")
	g.parts = append(g.parts, b.String())
}

// unquoted returns a text, or the one that an expression is which is nothing but a text.
func unquoted(v any) string {
	text, _ := v.(string)
	if inner, whole := wholeExpression(text); whole {
		if said, is := literalText(inner); is {
			return said
		}
	}
	return text
}

// refuseSecret refuses a Secret whose content is in the definition, unless it was asked for. A value that is an expression
// as a whole comes from elsewhere, if the expression refers to anything.
func (g *graphImport) refuseSecret(at string, template map[string]any) {
	if g.secrets || unquoted(template["apiVersion"]) != "v1" || unquoted(template["kind"]) != "Secret" {
		return
	}
	for _, field := range []string{"data", "stringData"} {
		content, _ := template[field].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(content)) {
			text, _ := content[name].(string)
			if inner, whole := wholeExpression(text); content[name] != nil && (!whole || isConstant(inner)) {
				g.refusef(at+"."+field+"."+name, "its content would stand in the package; refer to the Secret with an externalRef, or import it with --secrets")
			}
		}
	}
}

// external adds an input.
func (g *graphImport) external(at, id string, ref map[string]any) {
	metadata, _ := ref["metadata"].(map[string]any)
	if metadata["selector"] != nil {
		g.refusef(at+".externalRef.metadata.selector", "has to be written by hand, as the labels of an input")
	}
	input := map[string]any{"apiVersion": ref["apiVersion"], "kind": ref["kind"], "name": metadata["name"]}
	if metadata["namespace"] != nil {
		input["namespace"] = metadata["namespace"]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "inputs: %s: ", label(id))
	(&emitter{}).value(&b, g.translated(at+".externalRef", input), 0)
	g.parts = append(g.parts, b.String()+"\n")
}

// conditions returns conditions as CUE.
func (g *graphImport) conditions(at string, of any) []string {
	list, _ := of.([]any)
	var out []string
	for i, c := range list {
		text, _ := c.(string)
		inner, whole := wholeExpression(text)
		if !whole {
			g.refusef(fmt.Sprintf("%s[%d]", at, i), "%q is no expression", text)
			continue
		}
		out = append(out, g.expression(fmt.Sprintf("%s[%d]", at, i), inner))
	}
	return out
}

// expression returns an expression as CUE, or notes why it cannot be one.
func (g *graphImport) expression(at, text string) string {
	out, err := g.cel.expression(text)
	if err != nil {
		g.refusef(at, "${%s}: %v", text, err)
		return "_"
	}
	return out
}

// translated returns a value with its expressions as CUE.
func (g *graphImport) translated(at string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if strings.Contains(name, "${") {
				g.refusef(at+"."+name, "an expression in the name of a field has to be written by hand")
			}
			out[name] = g.translated(at+"."+name, v[name])
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = g.translated(fmt.Sprintf("%s[%d]", at, i), value)
		}
		return out
	case string:
		return g.text(at, v)
	}
	return v
}

// text returns a text with its expressions as CUE.
func (g *graphImport) text(at, text string) any {
	if !strings.Contains(text, "${") {
		return text
	}
	if inner, whole := wholeExpression(text); whole {
		if said, is := literalText(inner); is {
			return said
		}
		return reference(g.expression(at, inner))
	}
	var b strings.Builder
	b.WriteByte('"')
	for text != "" {
		before, rest, found := strings.Cut(text, "${")
		b.WriteString(quoted(before))
		if !found {
			break
		}
		end := endOf(rest)
		if end < 0 {
			g.refusef(at, "${ has no end")
			break
		}
		if said, is := literalText(rest[:end]); is {
			b.WriteString(quoted(said))
		} else {
			b.WriteString(`\(` + g.expression(at, rest[:end]) + `)`)
		}
		text = rest[end+1:]
	}
	b.WriteByte('"')
	return reference(b.String())
}

// wholeExpression returns the expression that a text is as a whole.
func wholeExpression(text string) (string, bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "${") || endOf(text[2:]) != len(text)-3 {
		return "", false
	}
	return text[2 : len(text)-1], true
}

// endOf returns where an expression ends, or -1: at a brace that closes none, outside of texts.
func endOf(text string) int {
	depth, quote := 0, byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0 && c == '\\':
			i++
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case c == '"' || c == '\'':
			quote = c
		case c == '{':
			depth++
		case c == '}' && depth == 0:
			return i
		case c == '}':
			depth--
		}
	}
	return -1
}
