package cluster

import (
	"context"
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

// NewUncachedLive returns a Live that reads and writes without a cache and watches nothing, for commands. It
// errors if the configuration is wrong.
func NewUncachedLive(config *rest.Config) (*Live, error) {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, err
	}
	return &Live{Client: c, Direct: c, Kinds: reachable(Kinds(config))}, nil
}

// reachable returns a function that leaves out the kinds of groups that do not answer: a command shows what it can
// find.
func reachable(kinds func() ([]schema.GroupVersionKind, error)) func() ([]schema.GroupVersionKind, error) {
	return func() ([]schema.GroupVersionKind, error) {
		out, err := kinds()
		if len(out) > 0 {
			return out, nil
		}
		return nil, err
	}
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

// Resources lists what an API server serves, each kind in its preferred version. A broken aggregated API hides
// only its own kinds.
func Resources(config *rest.Config) ([]*metav1.APIResourceList, error) {
	lists, err := preferred(config)
	if err != nil && len(lists) == 0 {
		return nil, err
	}
	return lists, nil
}

// preferred lists what an API server serves, each kind in its preferred version, and what it does not know.
func preferred(config *rest.Config) ([]*metav1.APIResourceList, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return d.ServerPreferredResources()
}

// Kinds returns a function for Live.Kinds: it lists every kind, in its preferred version, that can be
// listed and deleted. With them it errors if a group does not answer that may have objects.
func Kinds(config *rest.Config) func() ([]schema.GroupVersionKind, error) {
	return func() ([]schema.GroupVersionKind, error) {
		lists, err := preferred(config)
		var out []schema.GroupVersionKind
		for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
			for _, r := range list.APIResources {
				out = append(out, schema.FromAPIVersionAndKind(list.GroupVersion, r.Kind))
			}
		}
		if onlyMetricsFailed(err) {
			err = nil
		}
		return out, err
	}
}

// RecentKinds returns a function for Live.RecentKinds: it lists what another one does for Live.Kinds, once for all who
// ask within kindsFresh.
func RecentKinds(kinds func() ([]schema.GroupVersionKind, error)) func(context.Context) ([]schema.GroupVersionKind, error) {
	answers := newSharedAnswers(kindsFresh, kindsFresh, kindsPatience, func(struct{}) ([]schema.GroupVersionKind, error) { return kinds() })
	return func(ctx context.Context) ([]schema.GroupVersionKind, error) { return answers.get(ctx, struct{}{}) }
}

// onlyMetricsFailed reports whether an error of discovery is about groups of metrics alone. These have no objects that
// anybody writes, and in many clusters nothing has served them for years.
func onlyMetricsFailed(err error) bool {
	failed, ok := discovery.GroupDiscoveryFailedErrorGroups(err)
	for of := range failed {
		ok = ok && strings.HasSuffix(of.Group, "metrics.k8s.io")
	}
	return ok
}

// onlyOthersFailed reports whether an error of discovery is about other groups alone.
func onlyOthersFailed(err error, group string) bool {
	failed, ok := discovery.GroupDiscoveryFailedErrorGroups(err)
	for of := range failed {
		ok = ok && of.Group != group
	}
	return ok
}
