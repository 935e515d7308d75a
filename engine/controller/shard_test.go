package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/object"
	"operetta.dev/test/machine"
)

func TestEachResourceIsInOneShard(t *testing.T) {
	t.Parallel()
	for count := 1; count <= object.MaxShards; count++ {
		sizes := make([]int, count)
		for i := range 3200 {
			uid := types.UID(fmt.Sprintf("0b5e%04d-4c1e-4f6a-9d1e-%012d", i, i*i))
			owners := 0
			for shard := range count {
				if (Shard{shard, count}).Contains(uid) {
					owners++
					sizes[shard]++
				}
			}
			if owners != 1 {
				t.Fatalf("%s has %d owners of %d", uid, owners, count)
			}
		}
		for shard, size := range sizes {
			if even := 3200 / count; size < even/2 || size > 2*even {
				t.Errorf("shard %d of %d has %d of 3200 resources", shard, count, size)
			}
		}
	}
	// A hash that changes with a version of the engine would let an old and a new process have one resource.
	if !(Shard{1, 3}).Contains("a") || !(Shard{2, 3}).Contains("g") {
		t.Error("the hash is another one than before")
	}
}

func TestShardsThatDoNotExistAreRefused(t *testing.T) {
	t.Parallel()
	for shard, exists := range map[Shard]bool{{}: true, {0, 1}: true, {2, 3}: true, {3, 3}: false, {-1, 3}: false, {0, object.MaxShards + 1}: false, {1, 0}: false, {0, -1}: false} {
		if err := shard.Check(); (err == nil) != exists {
			t.Errorf("%+v: the error is %v", shard, err)
		}
	}
}

func TestAShardReconcilesItsOwnAndForgetsTheRest(t *testing.T) {
	t.Parallel()
	uids := map[string]types.UID{"a": "a", "e": "g", "gone": ""}
	for name, row := range map[string]struct {
		reason string
		shard  Shard
		want   string
	}{
		"no shards": {"all are its own", Shard{}, "a e gone"},
		"first":     {"and it says of Patches that they have no resource", Shard{0, 3}, "gone"},
		"second":    {"", Shard{1, 3}, "a"},
		"third":     {"", Shard{2, 3}, "e"},
	} {
		got, forgotten := "", 0
		f := row.shard.only(func(key types.NamespacedName) types.UID { return uids[key.Name] }, func(_ context.Context, key types.NamespacedName) (time.Duration, error) {
			got += " " + key.Name
			return 0, nil
		}, func(types.NamespacedName) { forgotten++ })
		for _, key := range []string{"a", "e", "gone"} {
			if _, err := f(t.Context(), types.NamespacedName{Name: key}); err != nil {
				t.Fatal(err)
			}
		}
		if got != " "+row.want {
			t.Errorf("%s: %s: it reconciles%s", name, row.reason, got)
		}
		if row.shard != (Shard{}) && forgotten == 0 {
			t.Errorf("%s: it remembers what another process has", name)
		}
	}
}

// Between the look at the UID and the reconcile, a resource may be created, or replaced by another one of its name.
func TestAShardReadsNoResourceThatItDoesNotOwn(t *testing.T) {
	t.Parallel()
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	all := memory.New()
	all.Serve(kind.GroupKind(), cluster.Namespaced)
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetNamespace("n")
	u.SetName("x")
	made, err := all.Put("kubectl", u)
	if err != nil {
		t.Fatal(err)
	}
	for name, ref := range map[string]cluster.Ref{"there": cluster.RefOf(made), "gone": {GroupVersionKind: kind, Namespace: "n", Name: "y"}} {
		readers := 0
		for i := range 3 {
			got, err := ownResources{all, Shard{i, 3}}.GetCached(t.Context(), ref)
			if got != nil && err != nil || got == nil && err == nil && name == "there" {
				t.Errorf("%s: it is %v (error %v)", name, got, err)
			}
			if err == nil {
				readers++
			}
		}
		if want := map[string]int{"there": 1, "gone": 3}[name]; readers != want {
			t.Errorf("%s: %d shards read it", name, readers)
		}
	}
}

// leaseStore is an API server that has Leases, with versions as the real one.
type leaseStore struct {
	coordination.LeaseInterface

	mu      sync.Mutex
	version int
	by      map[string]*coordinationv1.Lease
	// before is called before an update, and created after a creation.
	before, created func(name string)
	// refused are the names that nobody may read.
	refused map[string]bool
}

var leaseResource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (s *leaseStore) Leases(string) coordination.LeaseInterface { return s }

func (s *leaseStore) Get(_ context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch u := s.by[name]; {
	case s.refused[name]:
		return nil, apierrors.NewForbidden(leaseResource, name, errors.New("no"))
	case u == nil:
		return nil, apierrors.NewNotFound(leaseResource, name)
	default:
		return u.DeepCopy(), nil
	}
}

// writes is how often something was written.
func (s *leaseStore) writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// delete deletes a Lease, as anybody may who has the right.
func (s *leaseStore) delete(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.by, name)
}

// has reports whether there is a Lease.
func (s *leaseStore) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[name] != nil
}

func (s *leaseStore) put(u *coordinationv1.Lease) *coordinationv1.Lease {
	s.version++
	u = u.DeepCopy()
	u.ResourceVersion = strconv.Itoa(s.version)
	s.by[u.Name] = u
	return u.DeepCopy()
}

func (s *leaseStore) Create(_ context.Context, u *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	if s.by[u.Name] != nil {
		s.mu.Unlock()
		return nil, apierrors.NewAlreadyExists(leaseResource, u.Name)
	}
	out, created := s.put(u), s.created
	s.mu.Unlock()
	if created != nil {
		created(u.Name)
	}
	return out, nil
}

func (s *leaseStore) Update(_ context.Context, u *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil {
		before(u.Name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by[u.Name] == nil || s.by[u.Name].ResourceVersion != u.ResourceVersion {
		return nil, apierrors.NewConflict(leaseResource, u.Name, errors.New("it has changed"))
	}
	if reflect.DeepEqual(s.by[u.Name], u) {
		return u.DeepCopy(), nil // what changes nothing gets no other version
	}
	return s.put(u), nil
}

// process returns the election of a process.
func (s *leaseStore) process(name string, shard Shard) *shardElection {
	return s.processOf("op", name, shard)
}

// processOf returns the election of a process of an operator.
func (s *leaseStore) processOf(operator, name string, shard Shard) *shardElection {
	e := &shardElection{
		shard: shard, id: operator, namespace: "ns", identity: name, leases: s, log: logr.Discard(),
		times: electionTimes{leaseDuration, renewDeadline, 20 * time.Millisecond, 100 * time.Millisecond},
	}
	e.lock = func(lease string) resourcelock.Interface {
		return &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: "ns", Name: lease}, Client: s, LockConfig: resourcelock.ResourceLockConfig{Identity: name}}
	}
	return e
}

// serving notes who serves, and fails a test when two may serve one resource.
type serving struct {
	t   *testing.T
	mu  sync.Mutex
	now map[string]Shard
	// seen counts how often each shard has begun.
	seen map[Shard]int
}

func (s *serving) begin(name string, shard Shard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, has := range s.now {
		if has.count() != shard.count() || has.Index == shard.Index {
			s.t.Errorf("%s (%+v) begins while %s (%+v) serves", name, shard, other, has)
		}
	}
	s.now[name] = shard
	s.seen[shard]++
}

func (s *serving) end(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.now, name)
}

// serves returns how many processes of a count serve.
func (s *serving) serves(count int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, has := range s.now {
		if has.count() == count {
			n++
		}
	}
	return n
}

// run runs a process until the function that it returns is called, which waits for its end.
func (s *serving) run(store *leaseStore, name string, shard Shard) (stop func()) {
	return s.runElection(store.process(name, shard), name)
}

func (s *serving) runElection(e *shardElection, name string) (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	shard := e.shard
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: e.agreedLock(), LeaseDuration: e.times.lease, RenewDeadline: e.times.renew, RetryPeriod: e.times.retry, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() { elector.Run(logr.NewContext(ctx, logr.Discard())) })
	all.Go(func() {
		for !elector.IsLeader() {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Millisecond):
			}
		}
		s.begin(name, shard)
	})
	return func() {
		s.end(name) // a process ends its reconciles before it gives the Lease back
		cancel()
		all.Wait()
		s.end(name)
	}
}

func (s *serving) await(what string, is func() bool) {
	s.t.Helper()
	machine.Eventually(s.t, what, is)
}

// It replaces processes one by one by those of another number of shards, as Kubernetes does, with standbys, there and back.
func TestNoTwoProcessesServeOneResourceWhateverTheirNumbersOfShards(t *testing.T) {
	t.Parallel()
	store, s := &leaseStore{by: map[string]*coordinationv1.Lease{}}, &serving{t: t, now: map[string]Shard{}, seen: map[Shard]int{}}
	var running []func()
	for round, count := range []int{1, 2, 3, 1, 4, 2} {
		var next []func()
		for i := range count {
			for standby := range 2 {
				next = append(next, s.run(store, fmt.Sprintf("%d-%d-of-%d-%d", round, i, count, standby), Shard{i, count}))
			}
			if len(running) > 0 { // one of the others ends for each that begins
				running[0]()
				running = running[1:]
			}
		}
		for _, stop := range running {
			stop()
		}
		running = next
		s.await(fmt.Sprintf("all of %d shards", count), func() bool { return s.serves(count) == count })
	}
	for _, stop := range running {
		stop()
	}
	t.Logf("shards have begun: %v", s.seen)
}

func TestAnotherNumberOfShardsWaitsForAsLongAsOneOfTheOldServes(t *testing.T) {
	t.Parallel()
	store, s := &leaseStore{by: map[string]*coordinationv1.Lease{}}, &serving{t: t, now: map[string]Shard{}, seen: map[Shard]int{}}
	first, second := s.run(store, "first", Shard{0, 2}), s.run(store, "second", Shard{1, 2})
	s.await("both shards", func() bool { return s.serves(2) == 2 })
	var others []func()
	for i := range 3 {
		others = append(others, s.run(store, fmt.Sprintf("other-%d", i), Shard{i, 3}))
	}
	first()
	began := store.writes()
	s.await("the others to take the Lease that is free, and to give it back", func() bool {
		if s.serves(3) > 0 || s.serves(2) != 1 {
			t.Errorf("%d of 3 and %d of 2 shards serve", s.serves(3), s.serves(2))
		}
		return store.writes() > began+20
	})
	again := s.run(store, "first again", Shard{0, 2})
	s.await("both of the old shards", func() bool { return s.serves(2) == 2 })
	again()
	second()
	s.await("all of the new shards", func() bool { return s.serves(3) == 3 })
	for _, stop := range others {
		stop()
	}
}

// A process that stood still may still believe that it holds all Leases.
func TestAChangeFailsWhenSomebodyHasBegunToServeSince(t *testing.T) {
	t.Parallel()
	store := &leaseStore{by: map[string]*coordinationv1.Lease{}}
	if err := store.process("first", Shard{0, 2}).write(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	old := store.process("old", Shard{0, 2})
	once := sync.OnceFunc(func() {
		if err := old.enter(t.Context()); err != nil {
			t.Error(err)
		}
	})
	var mu sync.Mutex
	armed := true
	store.before = func(name string) {
		mu.Lock()
		now := armed && name == object.SharedLease("op")
		armed = armed && !now
		mu.Unlock()
		if now {
			once()
		}
	}
	err := store.process("new", Shard{2, 3}).change(t.Context(), agreement{count: 2})
	if !apierrors.IsConflict(err) {
		t.Errorf("the number is changed under who serves: %v", err)
	}
	if _, agreed, err := old.read(t.Context()); agreed.count != 2 || err != nil {
		t.Errorf("the count is %d (error %v)", agreed.count, err)
	}
}

// The roles of an operator without shards name no Leases of shards.
func TestWhoMayNotTakeTheLeaseOfAShardIsTold(t *testing.T) {
	t.Parallel()
	store := &leaseStore{by: map[string]*coordinationv1.Lease{}, refused: map[string]bool{object.ShardLease("op", 1): true}}
	if err := store.process("old", Shard{0, 2}).write(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var said []string
	e := store.process("new", Shard{})
	e.log = funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, args)
	}, funcr.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := e.await(ctx); err == nil {
		t.Error("the number is agreed on")
	}
	mu.Lock()
	defer mu.Unlock()
	var hints []string
	for _, one := range said {
		if strings.Contains(one, "may not take") {
			hints = append(hints, one)
		}
	}
	if len(hints) != 1 || !strings.Contains(hints[0], "op-shard-1") || !strings.Contains(hints[0], "operetta rbac prints") {
		t.Errorf("it is said %d times: %q", len(hints), said)
	}
}

// A process may stand still as soon as it has taken the last Lease: all of them expire, and somebody serves before it goes on.
func TestAChangeFailsWhenItsLeasesHaveExpiredBeforeItsLastStep(t *testing.T) {
	t.Parallel()
	store := &leaseStore{by: map[string]*coordinationv1.Lease{}}
	old := store.process("old", Shard{0, 2})
	if err := old.write(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	store.created = func(name string) {
		if name != object.ShardLease("op", 1) {
			return
		}
		if err := old.enter(t.Context()); err != nil { // also if it was the last one to begin already
			t.Error(err)
		}
	}
	err := store.process("new", Shard{2, 3}).change(t.Context(), agreement{count: 2})
	if !apierrors.IsConflict(err) {
		t.Errorf("the number is changed under who serves: %v", err)
	}
	if _, agreed, err := old.read(t.Context()); agreed.count != 2 || err != nil {
		t.Errorf("the count is %d (error %v)", agreed.count, err)
	}
}

func TestWhoMayNotReadTheAgreementServesOnlyWithoutShards(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		shard  Shard
		marks  map[string]string
		refuse bool
		serves bool
	}{
		"no shards and no right":   {"the roles of early versions do not have it", Shard{}, nil, true, true},
		"shards and no right":      {"nobody knows who else serves", Shard{0, 2}, nil, true, false},
		"no shards and none known": {"somebody has deleted it since it was waited for", Shard{}, nil, false, false},
		"no shards":                {"it is theirs", Shard{}, map[string]string{shardsAnnotation: "1"}, false, true},
		"shards":                   {"it is theirs", Shard{0, 2}, map[string]string{shardsAnnotation: "2 shards"}, false, true},
		"shards of other names":    {"an early version has other Leases for them", Shard{0, 2}, map[string]string{shardsAnnotation: "2"}, false, false},
		"an agreement of others":   {"it is not theirs", Shard{0, 2}, map[string]string{shardsAnnotation: "3 shards"}, false, false},
		"no shards beside shards":  {"it would serve all", Shard{}, map[string]string{shardsAnnotation: "3 shards"}, false, false},
		"nonsense":                 {"it is not guessed what it means", Shard{}, map[string]string{shardsAnnotation: "many"}, false, false},
		"nothing":                  {"somebody has taken the annotation away", Shard{0, 2}, map[string]string{}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &leaseStore{by: map[string]*coordinationv1.Lease{}, refused: map[string]bool{object.SharedLease("op"): row.refuse}}
			if row.marks != nil {
				store.put(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: object.SharedLease("op"), Annotations: row.marks}})
			}
			if err := store.process("x", row.shard).enter(t.Context()); (err == nil) != row.serves {
				t.Errorf("%s: the error is %v", row.reason, err)
			}
		})
	}
}
