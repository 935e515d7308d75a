package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// A Shard is the part of all custom resources that a process serves, beside others with the same Count. The zero value is all.
type Shard struct{ Index, Count int }

// Check errors if there is no such shard.
func (s Shard) Check() error {
	switch {
	case s == Shard{}:
		return nil
	case s.Count < 1 || s.Count > object.MaxShards:
		return fmt.Errorf("there are 1 to %d shards, not %d", object.MaxShards, s.Count)
	case s.Index < 0 || s.Index >= s.Count:
		return fmt.Errorf("of %d shards, the last one is %d: there is no shard %d", s.Count, s.Count-1, s.Index)
	}
	return nil
}

// count is how many shards there are.
func (s Shard) count() int { return max(1, s.Count) }

// Contains reports whether a resource is in the shard. Its UID, which no client can choose, decides that, so it is in exactly one shard of each count.
func (s Shard) Contains(uid types.UID) bool {
	return s.shardOf(uid) == s.Index
}

// shardOf returns the shard that a resource is in.
func (s Shard) shardOf(uid types.UID) int {
	if s.count() == 1 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid))
	return int(h.Sum64() % uint64(s.Count)) //nolint:gosec // the count is not negative, as Check says
}

// elsewhere says which process is to be asked about a resource of another shard.
func (o Options) elsewhere(uid types.UID) string {
	shard := o.Shard.shardOf(uid)
	return fmt.Sprintf("shard %d of this operator serves the resource: its Lease is %s", shard, object.ShardLease(cmp.Or(o.LeaderElectionID, DefaultLeaderElectionID), shard))
}

// IsPrimary reports whether the shard is the one that does what only one process may: definitions, certificates, and
// Patches that no package is responsible for.
func (s Shard) IsPrimary() bool { return s.Index == 0 }

// addSingleton adds a runnable that only one process may run, which is one of the primary shard.
func (m *Manager) addSingleton(r manager.Runnable) error {
	if !m.options.Shard.IsPrimary() {
		return nil
	}
	return m.manager.Add(r)
}

// predicate lets the events of the resources of a shard through, and all deletions: what is known of a key is forgotten.
func (s Shard) predicate() predicate.Predicate {
	contains := func(o client.Object) bool { return s.Contains(o.GetUID()) }
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return contains(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return contains(e.ObjectNew) },
		GenericFunc: func(e event.GenericEvent) bool { return contains(e.Object) },
	}
}

// only returns a function that reconciles the resources of a shard, and forgets all others: an event of an object
// enqueues what the object names, whichever shard that is in. A resource that does not exist is in the primary shard, which tells its Patches.
func (s Shard) only(uid func(types.NamespacedName) types.UID, once reconcileFunc, forget func(types.NamespacedName)) reconcileFunc {
	if s.count() == 1 {
		return once
	}
	return func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
		is := uid(key)
		if is == "" && s.IsPrimary() || is != "" && s.Contains(is) {
			return once(ctx, key)
		}
		forget(key)
		return 0, nil
	}
}

// errOtherShard says that a resource has become one of another shard since it was looked at.
var errOtherShard = errors.New("the resource is one of another shard")

// ownResources is a cluster of resources of which those of other shards cannot be read: between the look of only and the
// reconcile, the resource, or another one of its name, may have been created.
type ownResources struct {
	cluster.Cluster

	shard Shard
}

// GetCached implements cluster.Cluster.
func (o ownResources) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	u, err := o.Cluster.GetCached(ctx, ref)
	if err == nil && u != nil && !o.shard.Contains(u.GetUID()) {
		return nil, errOtherShard
	}
	return u, err
}
