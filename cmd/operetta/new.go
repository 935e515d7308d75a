package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const newCRLong = `Print a custom resource of a package that satisfies its schema. Required fields have made-up
values. Optional fields are comments, with their defaults and descriptions; JSON has none.

The default is the package in the current folder.`

func newNew(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Print a new custom resource of a package",
		Long: `Print what a user of a package begins with: a custom resource that satisfies its schema. A new
package is made by operetta init.`,
		Example: `  operetta new cr ./cue/webapp`,
		Args:    func(_ *cobra.Command, args []string) error { return newWhat(args) },
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newNewCR(s))
	return cmd
}

// newWhat errors if there are arguments: they are most likely those of "operetta new cr".
func newWhat(args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError{fmt.Errorf("new what? Write operetta new cr %s for a custom resource", strings.Join(args, " "))}
}

// newCRFlags are the settings of "operetta new cr".
type newCRFlags struct{ name, namespace, output string }

func newNewCR(s streams) *cobra.Command {
	var f newCRFlags
	cmd := &cobra.Command{
		Use:   "cr [package]",
		Short: "Print a custom resource that satisfies the schema of a package",
		Long:  newCRLong,
		Example: `  operetta new cr ./cue/webapp --name shop > shop.yaml
  operetta new cr ./cue/webapp | operetta render ./cue/webapp -f -`,
		Args:              usageArgs(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeFolders,
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), s, args) },
	}
	cmd.Flags().StringVar(&f.name, "name", "example", "name of the custom resource")
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "namespace of the custom resource; by default it has none, and kubectl uses its own")
	outputFlag(cmd, &f.output, formatYAML, formatJSON)
	return cmd
}

func (f newCRFlags) run(ctx context.Context, s streams, args []string) error {
	found, err := examineFolders(ctx, args, examineSample)
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return usageError{fmt.Errorf("%d packages were named; a custom resource is of one", len(found))}
	}
	of := found[0]
	if of.Unmade != "" {
		return fmt.Errorf("no custom resource can be made up: %s", of.Unmade)
	}
	f.identify(of)
	if f.output == formatJSON {
		return printJSON(s.out, of.Sample)
	}
	text, err := textOf(of)
	if err != nil {
		return err
	}
	_, err = s.out.Write([]byte(text))
	return err
}

// identify gives the custom resource its name and its namespace.
func (f newCRFlags) identify(of finding) {
	metadata := map[string]any{"name": f.name}
	if f.namespace != "" && of.CRD.Spec.Scope == apiextensionsv1.NamespaceScoped {
		metadata["namespace"] = f.namespace
	}
	of.Sample["metadata"] = metadata
}

// textOf returns the custom resource with its optional fields in comments.
func textOf(of finding) (string, error) {
	spec, _ := of.Sample["spec"].(map[string]any)
	text, err := yamlOf(of.Sample)
	if err != nil {
		return "", err
	}
	if len(spec) > 0 {
		return text + optionalFields("  # ", of.CRD, of.Sample["apiVersion"], spec), nil
	}
	// Without a field, the spec is {} in its line: whoever uncomments fields has to replace all of it.
	if optional := optionalFields("#   ", of.CRD, of.Sample["apiVersion"], spec); optional != "" {
		text += "# or, in its place:\n# spec:\n" + optional
	}
	return text, nil
}

// optionalFields returns the fields of a spec that are not set, each as a comment that begins like that.
func optionalFields(begin string, definition *apiextensionsv1.CustomResourceDefinition, apiVersion any, spec map[string]any) string {
	var b strings.Builder
	for _, v := range definition.Spec.Versions {
		if fmt.Sprintf("%s/%s", definition.Spec.Group, v.Name) != apiVersion {
			continue
		}
		schema := v.Schema.OpenAPIV3Schema.Properties["spec"]
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			if _, set := spec[name]; set {
				continue
			}
			p := schema.Properties[name]
			fmt.Fprintf(&b, "%s%s: %s%s\n", begin, name, defaultOf(&p), about(&p))
		}
	}
	return b.String()
}

// defaultOf returns the default of a field, or what may be written there.
func defaultOf(s *apiextensionsv1.JSONSchemaProps) string {
	var values []string
	for _, v := range s.Enum {
		values = append(values, string(v.Raw))
	}
	switch {
	case s.Default != nil:
		return string(s.Default.Raw)
	case len(values) > 0:
		return "(" + strings.Join(values, " | ") + ")"
	case s.XIntOrString:
		return "(integer or string)"
	case s.Type == "":
		return "(any value)"
	case s.Type == "array" && s.Items != nil && s.Items.Schema != nil:
		return "[" + defaultOf(s.Items.Schema) + "]"
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "{key: " + defaultOf(s.AdditionalProperties.Schema) + "}"
	}
	return "(" + s.Type + ")"
}

// about returns the first sentence of a description as the end of a comment, or nothing.
func about(s *apiextensionsv1.JSONSchemaProps) string {
	text := strings.Join(strings.Fields(s.Description), " ")
	if sentence, _, more := strings.Cut(text, ". "); more {
		text = sentence + "."
	}
	if text == "" {
		return ""
	}
	return "  # " + text
}
