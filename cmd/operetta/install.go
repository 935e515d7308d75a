package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/policy"
	"operetta.dev/engine/status"
)

// defaultOperator is the user that config/manager/manager.yaml runs the operator as.
const defaultOperator = "system:serviceaccount:operetta-system:operetta"

const installLong = `Print what an administrator installs before the operators of packages run, ready for
kubectl apply: the CustomResourceDefinitions of the packages and of Patch, and policies
(ValidatingAdmissionPolicies, which need Kubernetes 1.30 and no webhook) by which

  - nobody but the operator writes what the engine keeps in the status of a custom
    resource, such as its inventory. The operator goes by it. The author's own fields of
    the status may be written by whoever has the right to;
  - whoever creates or changes a Patch has to say apiVersion and kind of each object in it,
    and needs the right to update that kind in the namespace. The operator carries a Patch
    out with its own rights.

Who the operator is, --operator-user says: the user that operetta run acts as, which
kubectl auth whoami prints. There may be several. To mend a status by hand, act as one:
kubectl --as.

The policy of patches knows the kinds of Kubernetes and those that the packages render. So
name all packages at once; a Patch of a kind that is not known is denied.

Without packages, it is the package in the current folder.`

// installFlags are the settings of `operetta install`.
type installFlags struct {
	output  string
	options policy.Options
}

func newInstall(s streams) *cobra.Command {
	var f installFlags
	cmd := &cobra.Command{
		Use:   "install [packages]",
		Short: "Print what a cluster needs before packages run: definitions and policies",
		Long:  installLong,
		Example: `  operetta install ./cue/... | kubectl apply --server-side -f -

  # The operator runs outside the cluster, as a user of its own
  operetta install ./cue/webapp --operator-user alice

  # One operator for a namespace, as in operetta run --namespace team-a
  operetta install ./cue/webapp -n team-a --operator-user system:serviceaccount:team-a:operetta`,
		ValidArgsFunction: folders,
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.Contains(f.options.Operators, "") {
				return usageError{errors.New("--operator-user: name the user that the operator acts as")}
			}
			dirs, err := expand(args, ".")
			if err != nil {
				return err
			}
			var found []finding
			for _, dir := range dirs {
				one, err := examine(cmd.Context(), dir, examineAll, nil)
				if err != nil {
					return err
				}
				if err := one.Faults.OrNil(); err != nil {
					return err
				}
				found = append(found, one)
			}
			all, err := installation(found, f.options)
			if err != nil {
				return err
			}
			return printManifests(s.out, f.output, all)
		},
	}
	outputFlag(cmd, &f.output, formatYAML, formatJSON)
	cmd.Flags().StringArrayVar(&f.options.Operators, "operator-user", []string{defaultOperator}, "user that the operator acts as; may be repeated")
	cmd.Flags().StringVarP(&f.options.Namespace, "namespace", "n", "", "let the policies hold in this namespace only")
	return cmd
}

// installation returns the definitions of packages and of Patch, and the policies.
func installation(found []finding, o policy.Options) ([]manifest, error) {
	patches := patch.CRD()
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(found)+1)
	var kinds []schema.GroupKind
	for _, f := range found {
		crds = append(crds, f.CRD)
		kinds = append(kinds, f.Kinds...)
	}
	out, err := definitionManifests(append(crds, patches))
	if err != nil {
		return nil, err
	}
	var policies []*unstructured.Unstructured
	add := func(more []*unstructured.Unstructured, failed error) {
		policies, err = append(policies, more...), errors.Join(err, failed)
	}
	var known []policy.Resource
	for _, c := range crds {
		add(policy.Status(resourceOf(c), status.EngineFields, status.Conditions, o))
		known = append(known, policy.Resource{GroupKind: schema.GroupKind{Group: c.Spec.Group, Kind: c.Spec.Names.Kind}, Plural: c.Spec.Names.Plural})
	}
	add(policy.Status(resourceOf(patches), statusFields(patches), nil, o))
	add(policy.Patches(resourceOf(patches), policy.Resources(known, kinds), o))
	if err != nil {
		return nil, fmt.Errorf("making the policies: %w", err)
	}
	for _, u := range policies {
		out = append(out, manifest{object: u.Object})
	}
	return out, nil
}

func resourceOf(c *apiextensionsv1.CustomResourceDefinition) schema.GroupResource {
	return schema.GroupResource{Group: c.Spec.Group, Resource: c.Spec.Names.Plural}
}

// statusFields returns the fields that the status of a kind has, which are all the
// engine's.
func statusFields(c *apiextensionsv1.CustomResourceDefinition) []string {
	return slices.Sorted(maps.Keys(c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties))
}
