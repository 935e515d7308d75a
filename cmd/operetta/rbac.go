package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"operetta.dev/engine/controller"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/object"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/rbac"
	"operetta.dev/engine/vet"
)

// The operator that operetta install installs.
const (
	defaultNamespace      = "operetta-system"
	defaultServiceAccount = "operetta"
)

const rbacLong = `Print the roles that an operator of packages needs, ready for kubectl apply, with their bindings
to its service account. The roles have

  - for each package its custom resource with /status and /finalizers, each kind that a branch
    of it may render, whether or not a sample shows the branch, and each kind that it reads;
  - the verbs that the engine uses, and no others: update only with policy: apply: "replace",
    no delete for objects that are always kept, create and patch of CustomResourceDefinitions
    only by their names;
  - what the engine itself needs: Patches, events, CustomResourceDefinitions, the Lease, and to
    ask who may read metrics.

They have no wildcard, and neither escalate nor bind. If a package renders a role, the operator
gets the permissions in it, and if it binds a ClusterRole that it does not render, the operator
is bound to that role, too: in Kubernetes, a user can only grant permissions that the user has.

A package is a folder, or a Package in a file. A Package may have CUE files of its own, or name a
module in a registry, which is fetched with the credentials of the cue command. The ConfigMap that
a Package names, and the Overlays that apply to it, are in the same file, or in one that -f gives.
With Packages, the roles are those of operetta run --packages-from-cluster. Those of the operator
itself have the rights that all Packages together need, so name all in one call.

A kind that only an evaluation knows, such as one from the spec, is a fault. The plural name of a
kind that is not built in is taken from the packages and from the CRDs that -f gives. It is
guessed otherwise, with a warning.

With --namespace the operator serves one namespace, or some, and has Roles in each. What a
package owns or reads elsewhere, according to its reach, adds Roles there, or a ClusterRole if
the reach is open or the kind is cluster-scoped. An administrator installs the CRDs then, and
the operator is run with --crds leave.

With --shadow, the roles are those of operetta run --shadow: get, list and watch, and nothing else.

With --impersonate PACKAGE=NAMESPACE/NAME, as with operetta run, the roles of the package are for
that service account, and the operator gets the right to impersonate it, and nobody else. A Package
in a file names its account itself. For other Packages of the cluster, name the account of each.

With --diff, print the permissions that change between two versions of a package, or of several:
+ is new, - is no longer needed. The exit code is 2 if there is one.

The default is the package in the current folder.`

// rbacFlags are the settings of `operetta rbac` and the part of `operetta install` about roles.
type rbacFlags struct {
	output    string
	diff      bool
	crds      string
	configMap string
	files     []string
	options   rbac.Options
	accounts  impersonations
	// metricsToken is the Secret with the token of metrics, or "".
	metricsToken string
	// read are the files that were read, by name.
	read map[string]manifestFile
}

func newRBAC(s streams) *cobra.Command {
	var f rbacFlags
	cmd := &cobra.Command{
		Use:   "rbac [packages]",
		Short: "Print the roles that the operator of packages needs",
		Long:  rbacLong,
		Example: `  operetta rbac ./cue/... | kubectl apply -f -

  # An operator for one namespace, as with operetta run --namespace team-a, and one for two
  operetta rbac ./cue/webapp -n team-a --service-account team-a/operetta
  operetta rbac ./cue/webapp -n team-a,team-b

  # A reviewer that only compares: operetta run --shadow
  operetta rbac --shadow ./cue/webapp --service-account default/reviewer

  # A Package that somebody wants to apply
  operetta rbac package.yaml

  # For a review: which permissions does this version add?
  operetta rbac --diff old/webapp new/webapp`,
		ValidArgsFunction: completeFolders,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.readFiles(cmd.Context(), s.in, args); err != nil {
				return err
			}
			if f.options.Shadow && f.options.PackageObjects {
				return usageError{errors.New("--shadow is about packages in folders: leave --packages-from-cluster and files with Packages out")}
			}
			if err := f.checkAccounts(args); err != nil {
				return err
			}
			if f.diff {
				return f.printDiff(cmd.Context(), s, args)
			}
			r, err := f.rights(cmd.Context(), s, args)
			if err != nil {
				return err
			}
			all, err := objectManifests(rbac.Roles(r.packages, r.plurals, r.crds, r.options))
			if err != nil {
				return err
			}
			return printManifests(s.out, f.output, all)
		},
	}
	outputFlag(cmd, &f.output, formatYAML, formatJSON)
	f.addFlags(cmd)
	addOverlayFlag(cmd)
	namespacesFlag(cmd, &f.options.Namespaces, "`namespaces` that the operator serves, separated by commas; repeat the flag for more; all by default")
	cmd.Flags().BoolVar(&f.options.Shadow, "shadow", false, "the roles of operetta run --shadow, which only reads")
	cmd.Flags().BoolVar(&f.diff, "diff", false, "print what changes between two folders, patterns or files of packages")
	return cmd
}

// addFlags adds the flags about the operator that has the roles.
func (f *rbacFlags) addFlags(cmd *cobra.Command) {
	f.options.OperatorNamespace, f.options.ServiceAccount = defaultNamespace, defaultServiceAccount
	cmd.Flags().Func("service-account", "`namespace/name` of the service account that the operator runs as", f.setAccount)
	cmd.Flags().Lookup("service-account").DefValue = defaultNamespace + "/" + defaultServiceAccount
	cmd.Flags().StringVar(&f.options.LeaderElectionID, "leader-election-id", controller.DefaultLeaderElectionID, "name of the Lease for leader election; empty without --leader-elect")
	installs := []string{crdsApply, crdsLeave}
	cmd.Flags().Var(&choice{value: &f.crds, values: installs}, "crds", "whether the operator applies CustomResourceDefinitions; by default it does unless it serves some namespaces")
	completeFlag(cmd, "crds", installs)
	cmd.Flags().BoolVar(&f.options.PackageObjects, "packages-from-cluster", false, "also print what operetta run --packages-from-cluster needs; then no package needs to be named")
	cmd.Flags().StringArrayVar(&f.options.PullSecrets, "pull-secret", nil, "name of a Secret in the operator's namespace with credentials for the registries of Packages; repeat the flag for more")
	cmd.Flags().StringVar(&f.configMap, "config-map", "", "namespace/name of the ConfigMap with the configuration, as with operetta run")
	cmd.Flags().StringVar(&f.metricsToken, "metrics-token-secret", "", "name of a Secret in the operator's namespace whose key token has the token of those who may read metrics; by default the API server is asked who may, and an operator of some namespaces serves metrics inside its pod alone")
	cmd.Flags().StringArrayVarP(&f.files, "filename", "f", nil, "file with CRDs of kinds that the packages render or read, or with Packages; - is standard input")
	completeManifests(cmd, "filename")
	f.accounts.addFlag(cmd)
	cmd.Flags().IntVar(&f.options.Shards, "shards", 0, "number of processes that share the custom resources, as with operetta run; the roles are the same")
}

// setAccount reads the service account that the operator runs as.
func (f *rbacFlags) setAccount(text string) error {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return errors.New("write namespace/name")
	}
	f.options.OperatorNamespace, f.options.ServiceAccount = namespace, name
	return nil
}

// rights are what roles follow from.
type rights struct {
	found    []finding
	packages []rbac.Package
	plurals  rbac.Plurals
	crds     []string
	// options are those of the flags, with what Packages in files take of the operator itself.
	options rbac.Options
}

// complete sets the options that follow from flags.
func (f *rbacFlags) complete() error {
	f.options.InstallsCRDs = f.crds == crdsApply || f.crds == "" && f.options.Namespaces.All()
	f.options.SecureMetrics = f.options.Namespaces.All() && f.metricsToken == ""
	key, err := parseConfigKey(f.configMap)
	f.options.ConfigMapNamespace, f.options.ConfigMap = key.Namespace, key.Name
	f.options.Impersonates = f.accounts.all()
	return err
}

// rights examines packages, and returns what their roles follow from. It warns of guesses.
func (f *rbacFlags) rights(ctx context.Context, s streams, args []string) (rights, error) {
	if err := errors.Join(f.complete(), f.readFiles(ctx, s.in, args)); err != nil {
		return rights{}, err
	}
	files, err := f.manifestsOf(args)
	if err != nil {
		return rights{}, err
	}
	accounts, err := f.actsAs(files)
	if err != nil {
		return rights{}, err
	}
	r := rights{plurals: rbac.Plurals{}, crds: []string{patch.CRD().Name}, options: files.takenOf(f.options)}
	r.options.Impersonates = accounts.all()
	maps.Copy(r.plurals, files.plurals)
	subjects, err := f.subjects(args)
	if err != nil {
		return rights{}, err
	}
	if r.found, err = examineRightsOf(ctx, s, subjects, files.scopes); err != nil {
		return rights{}, err
	}
	for _, found := range r.found {
		p := rbac.Package{
			Uses: found.Uses, Plural: found.CRD.Spec.Names.Plural,
			Kind:    schema.GroupKind{Group: found.CRD.Spec.Group, Kind: found.CRD.Spec.Names.Kind},
			Account: accounts[found.CRD.Labels[crd.PackageLabel]],
		}
		r.packages, r.crds = append(r.packages, p), append(r.crds, found.CRD.Name)
		r.plurals[p.Kind] = p.Plural
		for _, use := range found.Uses.Kinds {
			if use.Plural != "" {
				r.plurals[use.GroupKind] = use.Plural
			}
		}
	}
	r.warn(s.err)
	return r, nil
}

// folders returns the folders that the arguments name: by default the current one, and none with Packages of
// the cluster.
func (f *rbacFlags) folders(args []string) ([]string, error) {
	args = slices.DeleteFunc(slices.Clone(args), isFile)
	if len(args) == 0 && f.options.PackageObjects {
		return nil, nil
	}
	return expand(args, ".")
}

// warn warns of kinds whose plural name is a guess.
func (r rights) warn(w io.Writer) {
	for _, p := range r.packages {
		for _, use := range p.Kinds {
			if !r.plurals.Known(use.GroupKind) {
				printLinef(w, "%s: warning: the plural name of the kind %s is a guess (give its CustomResourceDefinition with -f or --crds)", use.Position, use.GroupKind)
			}
		}
	}
}

// examineRightsOf examines packages, each with the definitions of the others, because they decide which
// kinds are cluster-scoped.
func examineRightsOf(ctx context.Context, s streams, all []subject, scopes vet.Scopes) ([]finding, error) {
	found, err := (&examination{streams: s, mode: examineRights}).together(ctx, all, scopes)
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		if err := f.Faults.OrNil(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// printDiff prints the permissions that change between two folders or patterns of packages.
func (f *rbacFlags) printDiff(ctx context.Context, s streams, args []string) error {
	if len(args) != 2 {
		return usageError{errors.New("--diff: name the folder or the file of the old version, and that of the new one")}
	}
	var sides [2]rights
	for i, arg := range args {
		var err error
		if sides[i], err = f.rights(ctx, s, []string{arg}); err != nil {
			return err
		}
	}
	changed := changes(sides[0], sides[1])
	if err := printChanges(s.out, f.output, changed); err != nil {
		return err
	}
	if len(changed) > 0 {
		return errDiffers
	}
	return nil
}

// changes returns the permissions that change between what two versions need.
func changes(before, after rights) []plan.Permission {
	was, is := before.permissions(), after.permissions()
	var out []plan.Permission
	for _, p := range slices.SortedFunc(maps.Keys(was.SymmetricDifference(is)), rbac.Permission.Compare) {
		out = append(out, plan.Permission{Sign: map[bool]string{true: "+", false: "-"}[is.Has(p)], Permission: p.String()})
	}
	return out
}

// permissions returns what an operator with the rights may do.
func (r rights) permissions() sets.Set[rbac.Permission] {
	return sets.New(rbac.Permissions(r.packages, r.plurals, r.crds, r.options)...)
}

// printChanges prints changes one a line, or in JSON as a list.
func printChanges(w io.Writer, format string, changes []plan.Permission) error {
	if format == formatJSON {
		return printJSON(w, append([]plan.Permission{}, changes...))
	}
	for _, c := range changes {
		printLinef(w, "%s %s", c.Sign, c.Permission)
	}
	return nil
}

// objectManifests returns typed objects as manifests to print, without the fields that an API server sets.
func objectManifests(objects []any) ([]manifest, error) {
	var out []manifest
	for _, o := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return nil, fmt.Errorf("converting %T: %w", o, err)
		}
		delete(content, "status")
		object.DropNulls(content)
		out = append(out, manifest{object: content})
	}
	return out, nil
}
