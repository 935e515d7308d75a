package cluster

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
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

// Uncached returns a Live that reads and writes without a cache and watches nothing, for commands. It
// errors if the configuration is wrong.
func Uncached(config *rest.Config) (*Live, error) {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, err
	}
	return &Live{Client: c, Direct: c, Kinds: Kinds(config)}, nil
}

// KindNamed returns the kind that a word means as in kubectl get: a kind, a resource in singular or plural,
// with or without its group, or a short name. It errors if the API server serves none.
func KindNamed(config *rest.Config, word string) (schema.GroupVersionKind, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	cached := memory.NewMemCacheClient(d)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, func(string) {})
	full, group := schema.ParseResourceArg(strings.ToLower(word))
	if full != nil {
		if kind, err := mapper.KindFor(*full); err == nil {
			return kind, nil
		}
	}
	return mapper.KindFor(group.WithVersion(""))
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
