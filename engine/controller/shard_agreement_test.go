package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"operetta.dev/engine/object"
	"operetta.dev/test/machine"
)

func newServing(t *testing.T) (*leaseStore, *serving) {
	t.Helper()
	return &leaseStore{by: map[string]*coordinationv1.Lease{}}, &serving{t: t, now: map[string]Shard{}, seen: map[Shard]int{}}
}

// refuse has nobody read a Lease, or ends that.
func (s *leaseStore) refuse(name string, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil {
		s.refused = map[string]bool{}
	}
	s.refused[name] = is
}

func TestTheAgreementIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		reason string
		agreement
		wrong bool
	}{
		"1":         {"the only Lease has one name in all versions", agreement{count: 1}, false},
		"3 shards":  {"", agreement{count: 3}, false},
		"3":         {"an early version has written it", agreement{3, true}, false},
		"1 shards":  {"nobody writes it, and it is clear", agreement{count: 1}, false},
		"33 shards": {"there are no roles for as many", agreement{}, true},
		"0":         {"", agreement{}, true},
		"-1 shards": {"", agreement{}, true},
		"3 things":  {"a later version may mean anything by it", agreement{}, true},
		"3 ":        {"", agreement{}, true},
		"":          {"somebody has taken it away", agreement{}, true},
	} {
		got, err := parseAgreement(text)
		if (err != nil) != want.wrong || got != want.agreement {
			t.Errorf("%q: %s: %+v (error %v)", text, want.reason, got, err)
		}
	}
	for count := 1; count <= object.MaxShards; count++ {
		want := Shard{0, count}.agreement()
		if got, err := parseAgreement(want.String()); err != nil || got != want {
			t.Errorf("%d: %+v (error %v)", count, got, err)
		}
	}
}

// A shard writes it anew, and whoever finds none waits for that.
func TestSomebodyMayDeleteTheAgreementWhileShardsServe(t *testing.T) {
	t.Parallel()
	store, s := newServing(t)
	first, second := s.run(store, "first", Shard{0, 2}), s.run(store, "second", Shard{1, 2})
	s.await("both shards", func() bool { return s.serves(2) == 2 })
	first() // the Lease that one without shards needs is free
	for range 20 {
		store.delete(object.SharedLease("op"))
		alone, three := s.run(store, "alone", Shard{}), s.run(store, "three", Shard{0, 3})
		s.await("the agreement to be there again", func() bool { return store.has(object.SharedLease("op")) })
		alone()
		three()
	}
	if s.serves(2) != 1 {
		t.Errorf("%d of 2 serve", s.serves(2))
	}
	second()
}

func TestWithoutShardsThatServeADeletedAgreementIsMadeAgain(t *testing.T) {
	t.Parallel()
	for name, shard := range map[string]Shard{"Alone": {}, "Shards": {1, 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, s := newServing(t)
			before := s.run(store, "before", Shard{0, 2})
			s.await("a shard", func() bool { return s.serves(2) == 1 })
			before()
			store.delete(object.SharedLease("op"))
			e := store.process("next", shard)
			e.times.lease, e.times.renew = time.Second, 500*time.Millisecond
			began := time.Now()
			defer s.runElection(e, "next")()
			s.await("the next process", func() bool { return s.serves(shard.count()) == 1 })
			if took := time.Since(began); took < time.Second {
				t.Errorf("it has waited %s, while a shard may write what was deleted for a second", took)
			}
		})
	}
}

// Nobody waits for shards at the first start of an operator.
func TestAnOperatorThatHasNeverRunBeginsAtOnce(t *testing.T) {
	t.Parallel()
	for name, shard := range map[string]Shard{"Alone": {}, "Shards": {1, 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, s := newServing(t)
			began := time.Now()
			defer s.run(store, "first", shard)()
			s.await("it", func() bool { return s.serves(shard.count()) == 1 })
			if took := time.Since(began); took > machine.Limit(leaseDuration/2) {
				t.Errorf("it begins after %s", took)
			}
		})
	}
}

// readLock counts the reads of a Lease.
type readLock struct {
	resourcelock.Interface

	reads *atomic.Int32
}

// Get implements resourcelock.Interface.
func (l readLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.reads.Add(1)
	return l.Interface.Get(ctx)
}

// Without the permission to read Leases, a process that has no shards cannot tell its role from those of early versions. What it makes
// once it has the permission must not look to itself like what another process has left.
func TestWhoMayReadItsLeasesOnlyAfterAWhileBeginsAtOnceThen(t *testing.T) {
	t.Parallel()
	for name, shard := range map[string]Shard{"Alone": {}, "Shards": {1, 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, s := newServing(t)
			for _, lease := range []string{object.SharedLease("op"), "op", object.ShardLease("op", 1)} {
				store.refuse(lease, true)
			}
			var reads, said atomic.Int32
			e := store.process("late", shard)
			e.times.lease = time.Hour // whoever waited for what another process may do would never begin
			e.log = funcr.New(func(_, text string) {
				if strings.Contains(text, "is not known") {
					said.Add(1)
				}
			}, funcr.Options{})
			lock := e.lock
			e.lock = func(name string) resourcelock.Interface { return readLock{lock(name), &reads} }
			defer s.runElection(e, "late")()
			s.await("it to have tried several times", func() bool { return reads.Load() > 3 || shard.count() > 1 })
			for _, lease := range []string{object.SharedLease("op"), "op", object.ShardLease("op", 1)} {
				store.refuse(lease, false)
			}
			s.await("it", func() bool { return s.serves(shard.count()) == 1 })
			if n := said.Load(); n > 1 {
				t.Errorf("it is said %d times that nobody knows of others", n)
			}
		})
	}
}

// The holder of the Lease of an early version knows of no agreement.
func TestShardsWaitForAnOperatorThatKnowsOfNoAgreement(t *testing.T) {
	t.Parallel()
	store, s := newServing(t)
	now := metav1.NowMicro()
	store.put(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "op"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("early"), LeaseDurationSeconds: new(int32(3600)), AcquireTime: &now, RenewTime: &now,
	}})
	e := store.process("next", Shard{1, 2})
	e.times.lease, e.times.renew = 200*time.Millisecond, 100*time.Millisecond
	var tries atomic.Int32
	lock := e.lock
	e.lock = func(name string) resourcelock.Interface { tries.Add(1); return lock(name) }
	defer s.runElection(e, "next")()
	s.await("it to have tried several times", func() bool { return tries.Load() > 3 })
	if s.serves(2) > 0 {
		t.Error("it serves beside an operator of an early version")
	}
}

func TestShardsOfAnEarlyVersionServeBesideNobody(t *testing.T) {
	t.Parallel()
	store, s := newServing(t)
	store.put(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: object.SharedLease("op"), Annotations: map[string]string{shardsAnnotation: "2"}}})
	now := metav1.NowMicro()
	store.put(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "op-1"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("early"), LeaseDurationSeconds: new(int32(3600)), AcquireTime: &now, RenewTime: &now,
	}})
	e := store.process("next", Shard{1, 2})
	var tries atomic.Int32
	lock := e.lock
	e.lock = func(name string) resourcelock.Interface {
		if name == "op-1" {
			tries.Add(1)
		}
		return lock(name)
	}
	defer s.runElection(e, "next")()
	s.await("it to have tried the Lease of the early version", func() bool { return tries.Load() > 2 })
	if s.serves(2) > 0 {
		t.Error("it serves beside a shard of an early version")
	}
	store.delete("op-1")
	s.await("it to serve", func() bool { return s.serves(2) == 1 })
}

// The Lease of shard 1 of shop is not that of shop-1.
func TestOperatorsOfSimilarNamesHaveDifferentLeases(t *testing.T) {
	t.Parallel()
	store, s := newServing(t)
	shards, alone := &serving{t: t, now: map[string]Shard{}, seen: map[Shard]int{}}, s
	for i := range 2 {
		name := fmt.Sprintf("shop %d", i)
		defer shards.runElection(store.processOf("shop", name, Shard{i, 2}), name)()
	}
	defer alone.runElection(store.processOf("shop-1", "shop-1", Shard{}), "shop-1")()
	s.await("all three", func() bool { return shards.serves(2) == 2 && alone.serves(1) == 1 })

	names := map[string]string{}
	for _, id := range []string{"shop", "shop-1", "shop-shard", "shop-1-shard", "operetta.dev"} {
		if err := object.CheckLease(id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		for _, name := range append(object.ShardLeases(id), object.SharedLease(id)) {
			if other := names[name]; other != "" {
				t.Errorf("%s is a Lease of %s and of %s", name, other, id)
			}
			names[name] = id
			if name != id && object.CheckLease(name) == nil {
				t.Errorf("%s can be the name of an operator's Lease", name)
			}
		}
	}
}

// A process that was cut off from the API server reads the Lease when it gives it back, and another one may have it by then.
func TestNobodyGivesBackTheLeaseOfAnotherProcess(t *testing.T) {
	t.Parallel()
	for name, lockOf := range map[string]func(*shardElection) resourcelock.Interface{
		"ToServe":       (*shardElection).agreedLock,
		"ToChangeCount": func(e *shardElection) resourcelock.Interface { return e.ownLock("op") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, _ := newServing(t)
			lock := lockOf(store.process("cut off", Shard{}))
			if _, _, err := lock.Get(t.Context()); !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
			if err := lock.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "cut off", LeaseDurationSeconds: 15}); err != nil {
				t.Fatal(err)
			}
			holder := func() string { return *store.lease(t, "op").Spec.HolderIdentity }
			taken := store.lease(t, "op")
			taken.Spec.HolderIdentity = new("next")
			store.put(taken)
			if _, _, err := lock.Get(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := lock.Update(t.Context(), resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}); err == nil || holder() != "next" {
				t.Errorf("%q holds the Lease (error %v)", holder(), err)
			}
			taken = store.lease(t, "op")
			taken.Spec.HolderIdentity = new("cut off")
			store.put(taken)
			if _, _, err := lock.Get(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := lock.Update(t.Context(), resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}); err != nil || holder() != "" {
				t.Errorf("its own Lease is not given back: %q holds it (error %v)", holder(), err)
			}
		})
	}
}

// Somebody deletes the Lease of a shard, and by then another number is agreed on.
func TestAShardMakesItsDeletedLeaseOnlyByTheAgreement(t *testing.T) {
	t.Parallel()
	store, _ := newServing(t)
	e := store.process("first", Shard{0, 2})
	lock := e.agreedLock()
	if _, _, err := lock.Get(t.Context()); !apierrors.IsNotFound(err) && err != nil {
		t.Fatal(err)
	}
	own := resourcelock.LeaderElectionRecord{HolderIdentity: "first", LeaseDurationSeconds: 15}
	store.delete("op") // it was taken for the agreement
	if err := lock.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	store.delete("op")
	if err := lock.Create(t.Context(), own); err != nil {
		t.Fatalf("nothing else is agreed on: %v", err)
	}
	store.delete("op")
	shared := store.lease(t, object.SharedLease("op"))
	shared.Annotations[shardsAnnotation] = Shard{0, 3}.agreement().String()
	store.put(shared)
	if err := lock.Create(t.Context(), own); !errors.Is(err, errOtherCount) || store.has("op") {
		t.Errorf("the Lease is there: %t (error %v)", store.has("op"), err)
	}
}

// lease returns a Lease.
func (s *leaseStore) lease(t *testing.T, name string) *coordinationv1.Lease {
	t.Helper()
	u, err := s.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestAShardSaysWhoServesAResource(t *testing.T) {
	t.Parallel()
	for uid, want := range map[types.UID]string{
		"a": "shard 1 of this operator serves the resource: its Lease is shop-shard-1",
		"g": "shard 2 of this operator serves the resource: its Lease is shop-shard-2",
	} {
		if got := (Options{Shard: Shard{0, 3}, LeaderElectionID: "shop"}).elsewhere(uid); got != want {
			t.Errorf("%s: %q", uid, got)
		}
	}
}
