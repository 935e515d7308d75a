package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/controller"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/install"
	"operetta.dev/engine/object"
	"operetta.dev/engine/packages"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/policy"
	"operetta.dev/engine/rbac"
	"operetta.dev/engine/source"
	"operetta.dev/engine/status"
)

const installLong = `Print everything that a cluster needs to run the operator of packages, ready for kubectl apply:

  - the namespace and the service account of the operator, and its roles, as operetta rbac
    prints them;
  - a Deployment of two processes, of which one acts and the other stands by, with probes,
    limits and the restricted Pod Security Standard, its PodDisruptionBudget, a NetworkPolicy,
    and a Service for metrics;
  - the packages, each as a ConfigMap;
  - the CustomResourceDefinitions of the packages and of Patch;
  - two ValidatingAdmissionPolicies, which need Kubernetes 1.30 and no webhook: only the operator
    may write the engine's fields in the status of a custom resource, such as the inventory,
    because it relies on them; and a user who creates or changes a Patch must give the
    apiVersion and kind of each object in it, and must be allowed to update that kind in the
    namespace, because the operator applies a Patch with its own permissions. The author's own
    status fields can still be written by every user with permission to write the status. To
    repair a status by hand, act as the user of the operator: kubectl --as.

With --webhooks, the operator also serves admission webhooks, and the command prints their Service
and configurations: requests for custom resources are refused for all that the packages say, and
get the defaults, labels and warnings of the packages. The operator makes the certificate itself
and replaces it in time; --webhooks=cert-manager leaves that to cert-manager. docs/admission.md
describes them.

With --operator-user the operator does not run by this Deployment but elsewhere, as the user
that the flag names; kubectl auth whoami prints it. Then only the CustomResourceDefinitions and
the policies are printed. Repeat the flag for several users.

With --packages-from-cluster, the command also prints what operetta run --packages-from-cluster
needs: the CustomResourceDefinitions of Package and PackageRevision, their roles, and the policy
that refuses the deletion of a Package with resources if its spec.deletionPolicy is Refuse. Then
no package needs to be named. The roles for what Packages render are not among them: who they are
is not known yet.

With --as-packages, the packages are printed as objects of the kind Package, in place of ConfigMaps
that the operator mounts. The operator serves them as with --packages-from-cluster, so each may have
a canary, limits and pins; an apply leaves such fields as they are. kubectl finds the kind only once
its definition is there: where it is new, apply the same twice.

With --require-signatures, the operator takes only content from registries that one of the keys
in a file has signed. No Package can weaken that; docs/packages.md describes it.

With --impersonate PACKAGE=NAMESPACE/NAME, as with operetta run, the operator acts as a service
account for the resources of a package. The account, its roles and policies are among the objects,
and the operator gets the right to impersonate it, and nobody else.

With --shards N, the operator is a StatefulSet of N processes in place of the Deployment; each
serves its shard of the custom resources, as with operetta run. --replicas has no effect then.

With --argocd, only a patch is printed, by which Argo CD knows how far the resources of the packages
are. It is for kubectl patch configmap argocd-cm --patch-file, and no object: the ConfigMap is Argo
CD's own, and would be deleted with the rest.

With --chart, the same is written as a Helm chart: the service account has the name of the
release, and the namespace is that of the release. Definitions stay when a release is
uninstalled, because all resources would go with them.

With --olm, the same is written as a bundle for the Operator Lifecycle Manager, in the format
registry+v1: a ClusterServiceVersion with the Deployment and its rights, the definitions, which OLM
applies then and not the operator, and the packages. The policies are in a file beside it, because
OLM installs none. With --namespace, so is the OperatorGroup that it is for. With --webhooks, OLM
makes the certificate, the Service and the configurations of the webhooks.

The policy for Patches knows the built-in kinds and the kinds that the packages render, and
denies a Patch of any other kind. So name all packages in one call.

The default is the package in the current folder.`

// installFlags are the settings of `operetta install`.
type installFlags struct {
	rbacFlags

	policies policy.Options
	run      install.Options
	// chart is the folder that gets a Helm chart, or "".
	chart string
	// asPackages prints the packages as objects in place of mounting them, and objects are these.
	asPackages bool
	objects    []manifest
	// argocd prints the health checks for Argo CD, and nothing else.
	argocd bool
	bundle bundleFlags
	// acting says as whom the operator acts for packages, as the flags and the Packages in files say.
	acting impersonations
	// signatures is the file that says which signatures contents need, or "".
	signatures string
}

func newInstall(s streams) *cobra.Command {
	var f installFlags
	cmd := &cobra.Command{
		Use:   "install [packages]",
		Short: "Print everything that a cluster needs to run the operator of packages",
		Long:  installLong,
		Example: `  operetta install ./cue/... | kubectl apply --server-side -f -

  # An operator outside the cluster, with its own user
  operetta install ./cue/webapp --operator-user alice
  # The package as an object of the cluster
  operetta install ./cue/webapp --as-packages

  # An operator for one namespace, and one for two
  operetta install ./cue/webapp -n team-a --service-account team-a/operetta
  operetta install ./cue/webapp -n team-a,team-b`,
		ValidArgsFunction: completeFolders,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.prepare(cmd, s, args); err != nil {
				return err
			}
			if f.argocd {
				return f.printHealthChecks(cmd.Context(), s, args)
			}
			if err := errors.Join(f.checkChart(cmd), f.bundle.check(cmd, f.run.Webhooks), f.completePackages(cmd)); err != nil {
				return err
			}
			f.completeBundle()
			defaults := f.prepareChart()
			all, err := f.manifests(cmd.Context(), s, args)
			if err != nil {
				return err
			}
			if f.chart != "" {
				return f.writeChart(all, defaults)
			}
			printed, err := all()
			if err != nil {
				return err
			}
			if f.bundle.folder != "" {
				return f.writeBundle(cmd.Context(), s, args, printed)
			}
			noteUnserved(s, printed)
			f.noteObjects(s, args)
			return printManifests(s.out, f.output, printed)
		},
	}
	outputFlag(cmd, &f.output, formatYAML, formatJSON)
	f.addOperatorFlags(cmd)
	cmd.Flags().StringArrayVar(&f.policies.Operators, "operator-user", nil, "user that an operator elsewhere acts as; repeat the flag for more")
	namespacesFlag(cmd, &f.options.Namespaces, "`namespaces` that the operator serves, separated by commas; repeat the flag for more; all by default")
	cmd.Flags().StringVar(&f.run.PackageSelector, "package-selector", "", "labels of the Packages to serve, such as team=a; all by default")
	f.addFormFlags(cmd)
	cmd.Flags().StringVar(&f.signatures, "require-signatures", "", "file that says which signatures contents from registries need, as for operetta run; the operator gets it as a ConfigMap")
	cmd.Flags().StringVar(&f.run.Image, "image", "operetta:latest", "image of the operator")
	optionalChoiceFlag(cmd, (*string)(&f.run.Webhooks), "webhooks", "also print admission webhooks, whose certificate the operator makes, or cert-manager; off by default", string(install.Operator), string(install.CertManager))
	return cmd
}

// addOperatorFlags adds the flags about the operator that has the roles, and about its processes.
func (f *installFlags) addOperatorFlags(cmd *cobra.Command) {
	f.addFlags(cmd)
	lease := cmd.Flags().Lookup("leader-election-id")
	lease.Usage, lease.DefValue = "name of the Lease for leader election; by default "+controller.DefaultLeaderElectionID+", or the name of the service account if that is another one than "+defaultServiceAccount, ""
	cmd.Flags().Int32Var(&f.run.Replicas, "replicas", 2, "number of processes; one acts, the others stand by")
}

// prepare sets what follows from flags and files, and errors if they contradict each other.
func (f *installFlags) prepare(cmd *cobra.Command, s streams, args []string) error {
	f.nameLease(cmd)
	if err := f.readFiles(cmd.Context(), s.in, args); err != nil {
		return err
	}
	return errors.Join(f.checkArgoCD(cmd), f.check(), f.checkAccounts(args))
}

// nameLease names the Lease after the service account, unless the flag or the default account does. Everything else of an operator has
// the name of its account, so two of them in a namespace would keep each other from acting by the Lease alone.
func (f *installFlags) nameLease(cmd *cobra.Command) {
	if f.options.ServiceAccount != defaultServiceAccount && !cmd.Flags().Changed("leader-election-id") {
		f.options.LeaderElectionID = f.options.ServiceAccount
	}
}

// addFormFlags adds the flags about the form of what is printed or written.
func (f *installFlags) addFormFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.asPackages, "as-packages", false, "print the packages as objects of the kind Package, which the operator serves, in place of mounting them")
	cmd.Flags().StringVar(&f.chart, "chart", "", "write a Helm chart into this folder and print nothing; its release names the service account and the namespace")
	f.bundle.addFlags(cmd)
	cmd.Flags().BoolVar(&f.argocd, "argocd", false, "print only the health checks of the kinds for Argo CD, a patch of its ConfigMap argocd-cm")
}

// check errors if the flags contradict each other.
func (f *installFlags) check() error {
	if slices.Contains(f.policies.Operators, "") {
		return usageError{errors.New("--operator-user: name the user that the operator acts as")}
	}
	if _, err := metav1.ParseToLabelSelector(f.run.PackageSelector); err != nil {
		return usageError{fmt.Errorf("--package-selector: %w", err)}
	}
	if err := f.checkShards(); err != nil {
		return err
	}
	if f.run.Replicas < 1 {
		return usageError{errors.New("--replicas: there is at least one")}
	}
	if err := checkImage(f.run.Image); err != nil {
		return usageError{err}
	}
	if f.options.LeaderElectionID == "" && f.run.Replicas > 1 && len(f.policies.Operators) == 0 {
		return usageError{fmt.Errorf("--leader-election-id: without a Lease, %d processes would all act; add --replicas 1, or name a Lease", f.run.Replicas)}
	}
	if f.signatures != "" {
		var err error
		if f.run.SignaturePolicy, _, err = readPolicy(f.signatures); err != nil {
			return usageError{err}
		}
	}
	if f.run.Webhooks != install.NoWebhooks && len(f.policies.Operators) > 0 {
		return usageError{errors.New("--webhooks: an operator that runs elsewhere has no Service")}
	}
	return nil
}

// checkImage errors about what the API server would refuse once everything else is applied.
func checkImage(image string) error {
	switch strings.TrimSpace(image) {
	case "":
		return errors.New("--image: name the image of the operator")
	case image:
		return nil
	}
	return fmt.Errorf("--image: %q has white space around it", image)
}

// checkShards errors if the shards contradict other flags.
func (f *installFlags) checkShards() error {
	shards := f.options.Shards
	if err := object.CheckLease(f.options.LeaderElectionID); err != nil { // the name may be that of the account
		return usageError{fmt.Errorf("--leader-election-id: %w", err)}
	}
	switch {
	case shards == 0:
		return nil
	case shards < 0 || shards > object.MaxShards:
		return usageError{fmt.Errorf("--shards: there are 1 to %d", object.MaxShards)}
	case f.options.LeaderElectionID == "" || f.chart != "":
		return usageError{errors.New("--shards: it needs a Lease, and does not go with --chart")}
	}
	return nil
}

// manifests examines packages, and returns a function that returns what is installed, by the options as they are by then.
func (f *installFlags) manifests(ctx context.Context, s streams, args []string) (func() ([]manifest, error), error) {
	f.policies.Namespaces = f.options.Namespaces
	if f.asPackages {
		args = orDefault(args, ".")
	}
	files, err := f.manifestsOf(args)
	if err != nil {
		return nil, err
	}
	if f.acting, err = f.actsAs(files); err != nil {
		return nil, err
	}
	if len(f.policies.Operators) > 0 {
		found, err := f.examine(ctx, args)
		if err == nil && f.asPackages {
			_, err = f.deliver(args)
		}
		if err != nil {
			return nil, err
		}
		return func() ([]manifest, error) { return f.withObjects(f.installation(found)) }, nil
	}
	r, err := f.rights(ctx, s, args)
	if err != nil {
		return nil, err
	}
	f.policies.Operators = []string{fmt.Sprintf("system:serviceaccount:%s:%s", f.options.OperatorNamespace, f.options.ServiceAccount)}
	f.run.Options, f.run.LeavesCRDs, f.run.ConfigMapFlag, f.run.MetricsTokenSecret, f.run.Accounts = r.options, !f.options.InstallsCRDs, f.configMap, f.metricsToken, f.accounts
	mounted, err := f.deliver(args)
	if err != nil {
		return nil, err
	}
	return func() ([]manifest, error) { return f.withObjects(f.operator(r, mounted)) }, nil
}

// deliver returns the packages that the operator has as files, or notes them as objects.
func (f *installFlags) deliver(args []string) ([]install.Package, error) {
	dirs, err := f.folders(args)
	if err != nil {
		return nil, err
	}
	if !f.asPackages {
		return packageFiles(dirs)
	}
	f.run.Accounts = nil // the Packages name them
	f.objects, err = f.packageObjects(dirs)
	return nil, err
}

// withObjects adds the Packages to what is installed.
func (f *installFlags) withObjects(all []manifest, err error) ([]manifest, error) {
	return append(all, f.objects...), err
}

// operator returns what an operator in the cluster consists of.
func (f *installFlags) operator(r rights, packages []install.Package) ([]manifest, error) {
	out, err := f.installation(r.found)
	if err != nil {
		return nil, err
	}
	var kinds []install.Kind
	for _, found := range r.found {
		kinds = append(kinds, install.Kind{CRD: found.CRD, FailsClosed: found.Admission.FailsClosed})
	}
	running, err := install.OperatorObjects(packages, f.run)
	if err != nil {
		return nil, fault.Faults{{Message: err.Error()}}
	}
	around, err := objectManifests(slices.Concat(install.Prerequisites(f.run), rbac.Roles(r.packages, r.plurals, r.crds, r.options), running))
	if err != nil {
		return nil, err
	}
	// The API server calls a webhook as soon as its configuration is there.
	webhooks, err := objectManifests(install.Webhooks(kinds, f.run))
	return slices.Concat(around, out, webhooks), err
}

// examine examines the packages of an operator that runs elsewhere.
func (f *installFlags) examine(ctx context.Context, args []string) ([]finding, error) {
	all, err := f.subjects(args)
	if err != nil {
		return nil, err
	}
	return examineSubjects(ctx, all, examineAll)
}

// packageFiles returns the files of packages.
func packageFiles(dirs []string) ([]install.Package, error) {
	all, err := readNamed(dirs, "as the operator mounts them side by side")
	var out []install.Package
	for _, s := range all {
		out = append(out, install.Package{Name: s.Name(), Dir: s.Dir(), Files: s.Texts()})
	}
	return out, err
}

// readNamed returns the packages in folders. It errors if two have the same name, and says why they must not.
func readNamed(dirs []string, why string) ([]*source.Snapshot, error) {
	var out []*source.Snapshot
	names := map[string]string{}
	for _, dir := range dirs {
		s, err := readPackage(dir)
		if err != nil {
			return nil, err
		}
		if other, taken := names[s.Name()]; taken {
			return nil, fault.Faults{{Message: fmt.Sprintf("the packages in %s and %s have the same name, %s", other, dir, s.Name()), Hint: "rename one of them, " + why}}
		}
		names[s.Name()], out = dir, append(out, s)
	}
	return out, nil
}

// installation returns the manifests to install: the CustomResourceDefinitions of the packages, of Patch
// and perhaps of Package, and the admission policies.
func (f *installFlags) installation(found []finding) ([]manifest, error) {
	patches := patch.CRD()
	var own []*apiextensionsv1.CustomResourceDefinition
	if f.options.PackageObjects {
		own = packages.CRDs()
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(found)+1)
	var kinds []schema.GroupKind
	for _, one := range found {
		crds = append(crds, crd.WithAccount(f.run.Convert(one.CRD), f.accountOf(one.CRD).String()))
		kinds = append(kinds, one.Kinds...)
	}
	out, err := crdManifests(slices.Concat(crds, []*apiextensionsv1.CustomResourceDefinition{patches}, own))
	if err != nil {
		return nil, err
	}
	var policies []any
	var known []policy.Resource
	for _, c := range crds {
		policies = append(policies, policy.Status(resourceOf(c), status.EngineFields, status.Conditions, f.writersOf(c))...)
		known = append(known, policy.Resource{GroupKind: schema.GroupKind{Group: c.Spec.Group, Kind: c.Spec.Names.Kind}, Plural: c.Spec.Names.Plural})
	}
	o := f.policies
	for _, kind := range f.patched(known) {
		policies = append(policies, policy.PatchStatus(resourceOf(patches), statusFields(patches), kind, f.writersOfPatches(kind, crds))...)
		policies = append(policies, policy.Patches(resourceOf(patches), kind, policy.Resources(known, kinds), o)...)
	}
	if f.options.PackageObjects {
		ofStatus, err := policy.PackageStatus(resourceOf(own[0]), statusFields(own[0]), f.run.PackageSelector, o)
		if err != nil {
			return nil, fmt.Errorf("making the policies: %w", err)
		}
		policies = slices.Concat(policies, ofStatus, policy.Packages(resourceOf(own[0]), o))
	}
	made, err := objectManifests(policies)
	return append(out, made...), err
}

// accountOf returns as whom the operator acts for the resources of a definition, or none.
func (f *installFlags) accountOf(c *apiextensionsv1.CustomResourceDefinition) object.Account {
	return f.acting[c.Labels[crd.PackageLabel]]
}

// writersOf returns the policies of the resources of a definition, whose status is written by the account of their package
// alone if there is one.
func (f *installFlags) writersOf(c *apiextensionsv1.CustomResourceDefinition) policy.Options {
	out := f.policies
	if account := f.accountOf(c); account != (object.Account{}) {
		out.Operators = []string{account.User()}
	}
	return out
}

// writersOfPatches returns the policies of the Patches for resources of a kind: the operator itself says of those without a
// resource that they have none.
func (f *installFlags) writersOfPatches(kind *policy.Resource, crds []*apiextensionsv1.CustomResourceDefinition) policy.Options {
	out := f.policies
	out.Operators = slices.Clone(out.Operators)
	for _, c := range crds {
		account := f.accountOf(c)
		if account != (object.Account{}) && (kind == nil || kind.Group == c.Spec.Group && kind.Kind == c.Spec.Names.Kind) {
			out.Operators = append(out.Operators, account.User())
		}
	}
	slices.Sort(out.Operators)
	out.Operators = slices.Compact(out.Operators)
	return out
}

// patched returns the kinds for whose resources the operator applies Patches. It does not know those of
// Packages of the cluster, and nil stands for them.
func (f *installFlags) patched(known []policy.Resource) []*policy.Resource {
	if f.options.PackageObjects {
		return []*policy.Resource{nil}
	}
	var out []*policy.Resource
	for i := range known {
		out = append(out, &known[i])
	}
	return out
}

// resourceOf returns the resource that a CustomResourceDefinition defines.
func resourceOf(c *apiextensionsv1.CustomResourceDefinition) schema.GroupResource {
	return schema.GroupResource{Group: c.Spec.Group, Resource: c.Spec.Names.Plural}
}

// statusFields returns the fields of the status of a kind, sorted.
func statusFields(c *apiextensionsv1.CustomResourceDefinition) []string {
	return slices.Sorted(maps.Keys(c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties))
}
