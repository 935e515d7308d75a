package importer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue/literal"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	"operetta.dev/engine/check"
	"operetta.dev/engine/program"
)

// An api is a CustomResourceDefinition whose kind becomes that of the package, with the version that is stored.
type api struct {
	definition apiextensionsv1.CustomResourceDefinition
	version    apiextensionsv1.CustomResourceDefinitionVersion
	at         string
}

// versionName matches the versions that a package can have.
var versionName = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// definitionKind is the kind of definitions, as the contract writes it.
const definitionKind = "CustomResourceDefinition.apiextensions.k8s.io"

// takeAPI takes the definition of a kind out of the objects. It errors if there is none, or if it has what a package
// cannot have.
func takeAPI(objects []*object, kind string) (*api, []*object, error) {
	at := slices.IndexFunc(objects, func(o *object) bool {
		spec, _ := o.Object["spec"].(map[string]any)
		names, _ := spec["names"].(map[string]any)
		return o.groupKind() == definitionKind && names["kind"] == kind
	})
	if at < 0 {
		return nil, nil, &RefusedError{[]string{fmt.Sprintf("none of the objects is the CustomResourceDefinition of %s", kind)}}
	}
	a := &api{at: objects[at].at}
	data, err := json.Marshal(objects[at].Object)
	if err == nil {
		err = json.Unmarshal(data, &a.definition)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", a.at, err)
	}
	var reasons []string
	for _, v := range a.definition.Spec.Versions {
		if !versionName.MatchString(v.Name) {
			reasons = append(reasons, fmt.Sprintf("%s: %q is no version that a package can have", a.at, v.Name))
		}
		if v.Storage {
			a.version = v
		} else if v.Served {
			reasons = append(reasons, fmt.Sprintf("%s: version %s is served beside the one that is stored: import writes a package with one version", a.at, v.Name))
		}
	}
	if a.version.Schema == nil || a.version.Schema.OpenAPIV3Schema == nil {
		reasons = append(reasons, a.at+": the version that is stored has no schema")
	}
	if len(reasons) > 0 {
		return nil, nil, &RefusedError{reasons}
	}
	return a, slices.Delete(slices.Clone(objects), at, at+1), nil
}

// spec returns the schema of the spec.
func (a *api) spec() *apiextensionsv1.JSONSchemaProps {
	spec := a.version.Schema.OpenAPIV3Schema.Properties["spec"]
	return &spec
}

// header writes the kind of the package, and its schema.
func (a *api) header(b *strings.Builder) (imports []string) {
	names := a.definition.Spec.Names
	quote := literal.String.Quote
	fmt.Fprintf(b, "group: %s\nkind: %s\nplural: %s\n", quote(a.definition.Spec.Group), quote(names.Kind), quote(names.Plural))
	if names.Singular != "" {
		fmt.Fprintf(b, "singular: %s\n", quote(names.Singular))
	}
	for _, n := range names.ShortNames {
		fmt.Fprintf(b, "shortNames: %s: true\n", label(n))
	}
	for _, c := range names.Categories {
		fmt.Fprintf(b, "categories: %s: true\n", label(c))
	}
	if a.definition.Spec.Scope == apiextensionsv1.ClusterScoped {
		b.WriteString("scope: \"Cluster\"\n")
	}
	fmt.Fprintf(b, "versions: %s: {\nspec: #Spec\n", a.version.Name)
	for _, c := range a.version.AdditionalPrinterColumns {
		fmt.Fprintf(b, "printerColumns: %s: {jsonPath: %s, type: %s, priority: %d", label(c.Name), quote(c.JSONPath), quote(c.Type), c.Priority)
		if c.Description != "" {
			fmt.Fprintf(b, ", description: %s", quote(c.Description))
		}
		b.WriteString("}\n")
	}
	if scale := scaleOf(a.version); scale != (program.Scale{}) {
		fmt.Fprintf(b, "scale: {replicas: %s, observed: %s", quote(scale.Replicas), quote(scale.Observed))
		if scale.Selector != "" {
			fmt.Fprintf(b, ", selector: %s", quote(scale.Selector))
		}
		b.WriteString("}\n")
	}
	b.WriteString("}\n")
	w := &schemaWriter{imports: map[string]bool{}}
	w.fields(a.spec())
	b.WriteString("\ncr: spec: #Spec\nlive: _\n\n")
	comment(b, cmp.Or(a.spec().Description, a.version.Schema.OpenAPIV3Schema.Description, inComment(names.Kind)+" is as in the definition that was imported."))
	fmt.Fprintf(b, "#Spec: {\n%s", w.b.String())
	for _, text := range attributesOf(a.spec()) {
		b.WriteString(text + "\n")
	}
	b.WriteString("}\n")
	return slices.Sorted(maps.Keys(w.imports))
}

// inComment returns a name as it stands in a comment: quoted if it could end the comment.
func inComment(name string) string {
	if word.MatchString(name) {
		return name
	}
	return literal.String.Quote(name)
}

// scaleOf returns the paths of the scale subresource of a version, or the zero value if there is none.
func scaleOf(v apiextensionsv1.CustomResourceDefinitionVersion) program.Scale {
	if v.Subresources == nil || v.Subresources.Scale == nil {
		return program.Scale{}
	}
	scale := v.Subresources.Scale
	return program.Scale{Replicas: scale.SpecReplicasPath, Observed: scale.StatusReplicasPath, Selector: ptr.Deref(scale.LabelSelectorPath, "")}
}

// compare returns what the package adds to a definition, for notes. It errors with a RefusedError if the definition that
// the package generates is another one.
func (a *api) compare(p *program.Program) (notes []string, err error) {
	generated, err := check.CRDOf(p)
	if err != nil {
		return nil, fmt.Errorf("the schema that was made: %w", err)
	}
	want, got := a.spec(), generated.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	if want.Default == nil && got.Default != nil { // an engine needs a spec, and this is what an empty one becomes
		got.Default = nil
		notes = append(notes, a.at+": a resource without a spec gets one with the defaults, because no field of it is required")
	}
	reasons := differences("spec", want, &got)
	if p.Meta().Versions[0].Scale != scaleOf(a.version) {
		reasons = append(reasons, "the subresource scale would be another one")
	}
	if len(reasons) > 0 {
		for i := range reasons {
			reasons[i] = a.at + ": " + reasons[i]
		}
		return nil, &RefusedError{reasons[:min(len(reasons), maxReasons)]}
	}
	return notes, nil
}
