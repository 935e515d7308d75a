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
	"operetta.dev/engine/packages"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/policy"
	"operetta.dev/engine/status"
)

// defaultOperator is the user that config/manager/manager.yaml runs the operator as.
const defaultOperator = "system:serviceaccount:operetta-system:operetta"

const installLong = `Print what an administrator installs before the operator runs, ready for kubectl apply: the
CustomResourceDefinitions of the packages and of Patch, and two policies. The policies are
ValidatingAdmissionPolicies: they need Kubernetes 1.30 and no webhook.

  - Only the operator may write the engine's fields in the status of a custom resource,
    such as the inventory, because the operator relies on them. The author's own status
    fields stay open to whoever has the right to write the status.
  - Whoever creates or changes a Patch must give the apiVersion and kind of each object in
    it, and must have the right to update that kind in the namespace. The operator applies
    a Patch with its own rights.

With --packages-from-cluster, the command also prints the CustomResourceDefinitions of
Package and PackageRevision, and the policy that refuses the deletion of a Package with
resources if its spec.deletionPolicy is Refuse. Then no package needs to be named.

--operator-user names the user that operetta run acts as; kubectl auth whoami prints it.
Repeat the flag for several users. To repair a status by hand, act as that user: kubectl --as.

The policy for Patches knows the built-in kinds and the kinds that the packages render, and
denies a Patch of any other kind. So name all packages in one call.

The default is the package in the current folder.`

// installFlags are the settings of `operetta install`.
type installFlags struct {
	output  string
	options policy.Options
	// packages adds what Packages of the cluster need.
	packages bool
}

func newInstall(s streams) *cobra.Command {
	var f installFlags
	cmd := &cobra.Command{
		Use:   "install [packages]",
		Short: "Print what a cluster needs first: CRDs and admission policies",
		Long:  installLong,
		Example: `  operetta install ./cue/... | kubectl apply --server-side -f -

  # An operator outside the cluster, with its own user
  operetta install ./cue/webapp --operator-user alice

  # An operator for one namespace, as with operetta run --namespace team-a
  operetta install ./cue/webapp -n team-a --operator-user system:serviceaccount:team-a:operetta`,
		ValidArgsFunction: completeFolders,
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.Contains(f.options.Operators, "") {
				return usageError{errors.New("--operator-user: name the user that the operator acts as")}
			}
			var found []finding
			if len(args) > 0 || !f.packages {
				var err error
				if found, err = examineFolders(cmd.Context(), args, examineAll); err != nil {
					return err
				}
			}
			all, err := installation(found, f)
			if err != nil {
				return err
			}
			return printManifests(s.out, f.output, all)
		},
	}
	outputFlag(cmd, &f.output, formatYAML, formatJSON)
	cmd.Flags().StringArrayVar(&f.options.Operators, "operator-user", []string{defaultOperator}, "user that the operator acts as; repeat the flag for more")
	cmd.Flags().StringVarP(&f.options.Namespace, "namespace", "n", "", "limit the policies to this namespace")
	cmd.Flags().BoolVar(&f.packages, "packages-from-cluster", false, "print what operetta run --packages-from-cluster needs, too")
	return cmd
}

// installation returns the manifests to install: the CustomResourceDefinitions of the packages, of Patch
// and perhaps of Package, and the admission policies.
func installation(found []finding, f installFlags) ([]manifest, error) {
	o, patches := f.options, patch.CRD()
	var own []*apiextensionsv1.CustomResourceDefinition
	if f.packages {
		own = packages.CRDs()
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(found)+1)
	var kinds []schema.GroupKind
	for _, f := range found {
		crds = append(crds, f.CRD)
		kinds = append(kinds, f.Kinds...)
	}
	out, err := crdManifests(slices.Concat(crds, []*apiextensionsv1.CustomResourceDefinition{patches}, own))
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
	if f.packages {
		add(policy.Status(resourceOf(own[0]), statusFields(own[0]), nil, o))
		add(policy.Packages(resourceOf(own[0]), o))
	}
	if err != nil {
		return nil, fmt.Errorf("making the policies: %w", err)
	}
	for _, u := range policies {
		out = append(out, manifest{object: u.Object})
	}
	return out, nil
}

// resourceOf returns the resource that a CustomResourceDefinition defines.
func resourceOf(c *apiextensionsv1.CustomResourceDefinition) schema.GroupResource {
	return schema.GroupResource{Group: c.Spec.Group, Resource: c.Spec.Names.Plural}
}

// statusFields returns the fields of the status of a kind, sorted.
func statusFields(c *apiextensionsv1.CustomResourceDefinition) []string {
	return slices.Sorted(maps.Keys(c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties))
}
