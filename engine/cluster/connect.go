package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ConsistentClient returns the client of a Live. It reads unstructured objects from the cache in the
// options, and these reads include its own writes.
func ConsistentClient(config *rest.Config, options client.Options) (client.Client, error) {
	yes := true
	options.Cache.Unstructured = true
	options.Cache.EnableReadYourWritesConsistency = &yes
	return client.New(config, options)
}

// Resources lists what an API server serves, each kind in its preferred version.
func Resources(config *rest.Config) ([]*metav1.APIResourceList, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := d.ServerPreferredResources()
	if err != nil && len(lists) == 0 { // a broken aggregated API hides only its own kinds
		return nil, err
	}
	return lists, nil
}

// Kinds returns a function for Live.Kinds: it lists every kind, in its preferred version, that can be
// listed and deleted.
func Kinds(config *rest.Config) func() ([]schema.GroupVersionKind, error) {
	return func() ([]schema.GroupVersionKind, error) {
		lists, err := Resources(config)
		if err != nil {
			return nil, err
		}
		var out []schema.GroupVersionKind
		for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
			for _, r := range list.APIResources {
				out = append(out, schema.FromAPIVersionAndKind(list.GroupVersion, r.Kind))
			}
		}
		return out, nil
	}
}
