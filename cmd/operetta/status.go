package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/object"
	"operetta.dev/engine/redact"
)

const statusLong = `List the custom resources of all packages of a cluster, those that are not ready first, with their
phase and the reason. operetta explain shows one of them in full.

The kinds are those whose CustomResourceDefinition has the label operetta.dev/package; name kinds to
see only these. It also lists the Packages whose canary is in progress or was rolled back. It reads
with your permissions and writes nothing.

The exit code is 1 if a resource is not ready.`

// statusFlags are the settings of `operetta status`.
type statusFlags struct {
	cluster    clusterFlags
	namespaces object.Namespaces
	output     string
}

func newStatus(s streams) *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status [KIND...]",
		Short: "List the custom resources of packages and how they are",
		Long:  statusLong,
		Example: `  operetta status

  operetta status webapps -n team-a,team-b`,
		ValidArgsFunction: f.cluster.completeKinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := f.list(cmd.Context(), s, args)
			if err != nil {
				return err
			}
			if f.output == formatJSON {
				err = printJSON(s.out, all)
			} else {
				err = printStatuses(s, all)
			}
			if err == nil && len(args) == 0 && f.output != formatJSON {
				err = printCanaries(cmd.Context(), s, f.cluster)
			}
			if err == nil && slices.ContainsFunc(all, func(r explain.Resource) bool { return r.Health != explain.Ready }) {
				err = errReported
			}
			return err
		},
	}
	f.cluster.addFlags(cmd)
	f.addNamespaces(cmd)
	f.cluster.completeNamespaces(cmd)
	outputFlag(cmd, &f.output, formatText, formatJSON)
	return cmd
}

// list returns the resources, those that are not ready first. It errors if a kind cannot be listed.
func (f statusFlags) list(ctx context.Context, s streams, words []string) ([]explain.Resource, error) {
	on, live, err := f.cluster.connect()
	if err != nil {
		return nil, err
	}
	kinds, err := servedKinds(ctx, on, words)
	if err != nil {
		return nil, err
	}
	if len(kinds) == 0 {
		printLinef(s.err, "note: the cluster at %s has no CustomResourceDefinition of a package", on.server())
	}
	out := []explain.Resource{} // in JSON, none is an empty list
	for _, kind := range kinds {
		found, err := f.ofKind(ctx, live, kind)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	if len(kinds) > 0 && len(out) == 0 {
		printLinef(s.err, "note: there is no %s%s", namesOf(kinds), inNamespaces(f.namespaces))
	}
	slices.SortStableFunc(out, func(a, b explain.Resource) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return out, nil
}

// addNamespaces adds the flag with the namespaces that are listed.
func (f *statusFlags) addNamespaces(cmd *cobra.Command) {
	namespacesFlag(cmd, &f.namespaces, "only the resources in these `namespaces`, separated by commas; repeat the flag for more; all by default")
}

// ofKind returns the resources of a kind. One that is cluster-scoped is in no namespace, and is listed once.
func (f statusFlags) ofKind(ctx context.Context, live *cluster.Live, kind schema.GroupVersionKind) ([]explain.Resource, error) {
	scope, err := live.Scope(ctx, kind)
	if err != nil {
		return nil, err
	}
	namespaces := f.namespaces
	if scope == cluster.ClusterScoped {
		namespaces = nil
	}
	var out []explain.Resource
	for _, namespace := range namespaces.Lists() {
		found, err := live.ListLive(ctx, cluster.Selection{Kind: kind, Namespace: namespace})
		if err != nil {
			return nil, err
		}
		for _, u := range found {
			out = append(out, explain.Summary(u))
		}
	}
	return out, nil
}

// inNamespaces says where something is, or is "" for everywhere.
func inNamespaces(namespaces object.Namespaces) string {
	switch {
	case namespaces.All():
		return ""
	case namespaces.Only() != "":
		return " in namespace " + namespaces.Only()
	}
	return " in namespaces " + strings.Join(namespaces, ", ")
}

// namesOf returns the names of kinds that there is nothing of.
func namesOf(kinds []schema.GroupVersionKind) string {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = kind.GroupKind().String()
	}
	return strings.Join(names, ", no ")
}

// rank sorts what is ready behind what is not.
func rank(r explain.Resource) int {
	if r.Health == explain.Ready {
		return 1
	}
	return 0
}

// servedKinds returns the kinds that words mean, or else those of all packages, each in the version in which
// it is stored.
func servedKinds(ctx context.Context, on target, words []string) ([]schema.GroupVersionKind, error) {
	var out []schema.GroupVersionKind
	for _, word := range words {
		kind, err := on.kindNamed(word)
		if err != nil {
			return nil, err
		}
		out = append(out, kind)
	}
	if len(words) > 0 {
		return out, nil
	}
	client, err := apiextensions.NewForConfig(on.config)
	if err != nil {
		return nil, err
	}
	definitions, err := client.CustomResourceDefinitions().List(ctx, metav1.ListOptions{LabelSelector: crd.PackageLabel})
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("looking for the kinds of packages: %w (name kinds, such as webapps)", err)
	case err != nil:
		return nil, fmt.Errorf("looking for the kinds of packages: %w", on.outage(err))
	}
	for i := range definitions.Items {
		out = append(out, storedKind(&definitions.Items[i]))
	}
	return out, nil
}

// storedKind returns the kind that a definition defines, in the version in which it is stored.
func storedKind(d *apiextensionsv1.CustomResourceDefinition) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: d.Spec.Group, Version: crd.StorageVersion(d), Kind: d.Spec.Names.Kind}
}

// printStatuses prints a line for each resource.
func printStatuses(s streams, all []explain.Resource) error {
	w := tabwriter.NewWriter(s.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "NAMESPACE\tNAME\tPHASE\tCOMPONENTS\tSINCE\tWHY")
	for _, r := range all {
		since := "-"
		if at := r.Since(); !at.IsZero() {
			since = duration.HumanDuration(max(0, time.Since(at)))
		}
		line := []string{cmp.Or(r.Namespace, "-"), strings.ToLower(r.Kind) + "/" + r.Name, cmp.Or(string(r.Phase), "-"), cmp.Or(r.Ready, "-"), since}
		if why := redact.OneLine(r.Message); why != "" {
			line = append(line, why)
		}
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	return w.Flush()
}
