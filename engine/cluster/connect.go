package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Connection is what a Live reads and writes through.
type Connection struct {
	// Cache is to be started before anything is read.
	Cache  cache.Cache
	client client.Client
	// Direct is a client without a cache.
	Direct client.Client
	kinds  func() ([]schema.GroupVersionKind, error)
}

// Connect returns a connection to an API server. What the cache holds, and what it
// shares with others, is up to the options.
func Connect(config *rest.Config, o cache.Options) (*Connection, error) {
	c, err := cache.New(config, o)
	if err != nil {
		return nil, fmt.Errorf("creating the cache: %w", err)
	}
	options := client.Options{HTTPClient: o.HTTPClient, Scheme: o.Scheme, Mapper: o.Mapper}
	direct, err := client.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("creating the client: %w", err)
	}
	options.Cache = &client.CacheOptions{Reader: c}
	cached, err := ConsistentClient(config, options)
	if err != nil {
		return nil, fmt.Errorf("creating the client: %w", err)
	}
	return &Connection{Cache: c, client: cached, Direct: direct, kinds: Kinds(config)}, nil
}

// Live returns the cluster behind the connection.
func (c *Connection) Live(watch func(context.Context, schema.GroupVersionKind) error) *Live {
	return &Live{Client: c.client, Direct: c.Direct, Kinds: c.kinds, Watch: watch}
}

// ConsistentClient returns a client whose reads of unstructured objects come from
// the cache and see its own writes.
func ConsistentClient(config *rest.Config, options client.Options) (client.Client, error) {
	yes := true
	options.Cache.Unstructured = true
	options.Cache.EnableReadYourWritesConsistency = &yes
	return client.New(config, options)
}

// Kinds returns what lists every kind of a cluster, in its preferred version, that can
// be listed and deleted.
func Kinds(config *rest.Config) func() ([]schema.GroupVersionKind, error) {
	return func() ([]schema.GroupVersionKind, error) {
		d, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			return nil, err
		}
		lists, err := d.ServerPreferredResources()
		if err != nil && len(lists) == 0 { // a broken aggregated API hides its own kinds only
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
