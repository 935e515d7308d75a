package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"operetta.dev/engine/cluster"
)

// contexts returns the names of the contexts in the kubeconfig, sorted, for a shell to complete.
func (f *clusterFlags) contexts() []string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	config, err := rules.Load()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(config.Contexts))
}

// namespaces returns the namespaces of the cluster for a shell to complete, behind those of a list that is typed
// already. There are none where the user may not list them.
func (f *clusterFlags) namespaces(ctx context.Context, typed string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	_, live, err := f.connect()
	if err != nil {
		return nil
	}
	found, err := live.ListLive(ctx, cluster.Selection{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}})
	if err != nil {
		return nil
	}
	before := typed[:strings.LastIndex(typed, ",")+1]
	var out []string
	for _, u := range found {
		out = append(out, before+u.GetName())
	}
	return out
}

// completeNamespaces makes a shell complete -n with what the cluster has that the other flags choose.
func (f *clusterFlags) completeNamespaces(cmd *cobra.Command) {
	must(cmd.RegisterFlagCompletionFunc("namespace", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return f.namespaces(cmd.Context(), typed), cobra.ShellCompDirectiveNoFileComp
	}))
}

// completeKinds returns the kinds of packages that the cluster has.
func (f *clusterFlags) completeKinds(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	kinds := explainFlags{cluster: *f}.complete(cmd.Context(), "")
	for i := range kinds {
		kinds[i] = strings.TrimSuffix(kinds[i], "/")
	}
	return kinds, cobra.ShellCompDirectiveNoFileComp
}
