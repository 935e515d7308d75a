package main

import (
	"fmt"
	"math"
	"text/tabwriter"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/program"
)

func newCRD(s streams) *cobra.Command {
	var output string
	var report bool
	cmd := &cobra.Command{
		Use:   "crd [packages]",
		Short: "Print the CustomResourceDefinition of packages",
		Long: `Print the CustomResourceDefinition of each package, ready for kubectl apply.

The schema comes from the package: types, defaults, bounds and required fields, with doc
comments as descriptions. If a CRD cannot express something, the command fails, names the
line and says what to write instead. It never leaves anything out silently.

Constraints over several fields become CEL rules where a rule can express exactly the same:
max: int & >=min, if mode == "tls" {cert!: _}, _valid: true & (min <= max), and matchN over
which fields exist. With --report, the command prints each constraint of each spec instead,
and what rejects a violation:

  OpenAPI   the API server, by the schema
  CEL       the API server, by a rule
  webhook   the webhook of the operator; without one, the next reconcile reports it in the status

The default is the package in the current folder.`,
		Example: `  operetta crd ./cue/webapp | kubectl apply -f -
  operetta crd ./cue/... -o json

  # Which constraints does only the operator check?
  operetta crd --report ./cue/webapp`,
		ValidArgsFunction: completeFolders,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := examineFolders(cmd.Context(), args, examineCRD)
			if err != nil {
				return err
			}
			if report {
				return printConstraints(s, output, found)
			}
			var crds []*apiextensionsv1.CustomResourceDefinition
			for _, f := range found {
				crds = append(crds, f.CRD)
			}
			all, err := crdManifests(crds)
			if err != nil {
				return err
			}
			noteUnserved(s, all)
			if output == formatJSON && len(all) == 1 { // several are a List
				return printJSON(s.out, all[0].object)
			}
			return printManifests(s.out, output, all)
		},
	}
	outputFlag(cmd, &output, formatYAML, formatJSON)
	cmd.Flags().BoolVar(&report, "report", false, "print the constraints of each spec, and who enforces them")
	cmd.AddCommand(newMigrate(s))
	return cmd
}

// A constraintsReport is what the constraints of packages are, as JSON.
type constraintsReport struct {
	Definitions []reportedDefinition `json:"definitions"`
}

// A reportedDefinition is a definition with the constraints of its specs.
type reportedDefinition struct {
	Name        string           `json:"name"`
	Constraints []crd.Constraint `json:"constraints"`
}

// printConstraints prints the constraints of packages, one a line, or as JSON.
func printConstraints(s streams, format string, found []finding) error {
	all := constraintsReport{}
	for _, f := range found {
		all.Definitions = append(all.Definitions, reportedDefinition{f.CRD.Name, f.Constraints})
	}
	if format == formatJSON {
		return printJSON(s.out, all)
	}
	for i, r := range all.Definitions {
		if i > 0 {
			printLinef(s.out, "")
		}
		printLinef(s.out, "%s", r.Name)
		w := tabwriter.NewWriter(s.out, 0, 8, 2, ' ', 0)
		for _, c := range r.Constraints {
			why := ""
			if c.Why != "" {
				why = " (" + c.Why + ")"
			}
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s%s\n", c.By, c.Place, c.Path, c.Text, why)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// noteUnserved says which versions of printed definitions are not served, and why.
func noteUnserved(s streams, all []manifest) {
	for _, m := range all {
		u := unstructured.Unstructured{Object: m.object}
		if versions := u.GetAnnotations()[crd.ConvertedAnnotation]; versions != "" && u.GetKind() == "CustomResourceDefinition" {
			_, _ = fmt.Fprintf(s.err, "note: %s serves the storage version alone, and not %s: versions are converted by the webhooks of the operator; see operetta install --webhooks\n", u.GetName(), versions)
		}
	}
}

// crdDefinition converts what a package says about its custom resource to the input of the CRD
// generator.
func crdDefinition(name string, reach program.Reach, m program.Meta) crd.CustomResource {
	def := crd.CustomResource{
		Package: name,
		Reach:   reach.String(),
		Group:   m.Group, Kind: m.Kind,
		Plural: m.Plural, Singular: m.Singular,
		ShortNames: m.ShortNames, Categories: m.Categories,
		Scope:       apiextensionsv1.NamespaceScoped,
		Description: m.Description,
	}
	if m.ClusterScoped {
		def.Scope = apiextensionsv1.ClusterScoped
	}
	for _, v := range m.Versions {
		version := crd.Version{Name: v.Name, Spec: v.Spec, Status: v.Status, Served: v.Served, Storage: v.Storage, Deprecated: v.Deprecated}
		version.Scale = scaleOf(v.Scale)
		for _, c := range v.Columns {
			version.PrinterColumns = append(version.PrinterColumns, apiextensionsv1.CustomResourceColumnDefinition{
				Name: c.Title, JSONPath: c.JSONPath, Type: c.Type, Format: c.Format, Description: c.Description, Priority: int32(min(max(c.Priority, 0), math.MaxInt32)),
			})
		}
		def.Versions = append(def.Versions, version)
	}
	return def
}

// scaleOf returns the scale subresource, or nil if the package has none.
func scaleOf(s program.Scale) *apiextensionsv1.CustomResourceSubresourceScale {
	if s.Replicas == "" {
		return nil
	}
	out := &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: s.Replicas, StatusReplicasPath: s.Observed}
	if s.Selector != "" {
		out.LabelSelectorPath = &s.Selector
	}
	return out
}

// crdManifests returns CustomResourceDefinitions as manifests to print.
func crdManifests(crds []*apiextensionsv1.CustomResourceDefinition) ([]manifest, error) {
	objects := make([]manifest, len(crds))
	for i, c := range crds {
		text, err := crd.YAML(c)
		if err != nil {
			return nil, err
		}
		// This decoder keeps integers; that of sigs.k8s.io/yaml makes them floats.
		if err := yaml.Unmarshal(text, &objects[i].object); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return objects, nil
}
