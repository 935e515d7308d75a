package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"operetta.dev/engine/object"
)

// How many shards there are is agreed on in one Lease, and each shard has a Lease of its own: that of shard 0 has the name of
// one without shards. A process serves while it holds the Lease of its shard, if its count was the agreed one when it took that.
//
//   - Who has taken its Lease looks at the agreement, and writes it as it is. If the count is another one, it gives the Lease back.
//   - Who has another count than the agreed one changes the agreement, once it holds the Leases of all shards of the agreed count
//     itself: then nobody serves. The write has the version that it read before it took the first one, so it fails if somebody
//     has begun to serve since, because its Leases had expired.
//
// So no two processes of different counts ever serve at a time, however they are started, and two of one count have different
// shards. What a deposed leader has sent already is as late as with any leader election.

// The annotations of the Lease with the agreement: the count, and who has begun to serve by it last, and when. Without the
// time, a process that begins twice would write nothing the second time, and the version would stay.
const (
	shardsAnnotation  = "operetta.dev/shards"
	enteredAnnotation = "operetta.dev/entered"
)

// errOtherCount says that another number of shards is agreed on.
var errOtherCount = errors.New("another number of shards is agreed on")

// shardElection is what a process needs to take Leases.
type shardElection struct {
	shard         Shard
	id, namespace string
	identity      string
	leases        coordination.LeaseInterface
	// lock returns the lock of a Lease.
	lock  func(name string) resourcelock.Interface
	log   logr.Logger
	times electionTimes
}

// electionTimes are those of the library, and how long a Lease is waited for while others are held.
type electionTimes struct{ lease, renew, retry, patience time.Duration }

// podNamespaceFile has the namespace of the pod that the process runs in.
const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// newElection returns the lock of the leader election of a process.
func newElection(config *rest.Config, o Options) (resourcelock.Interface, error) {
	namespace := o.LeaderElectionNamespace
	if namespace == "" {
		text, err := os.ReadFile(podNamespaceFile)
		if err != nil {
			return nil, fmt.Errorf("the namespace of the Lease is not known outside of a pod, name it: %w", err)
		}
		namespace = strings.TrimSpace(string(text))
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	config = rest.AddUserAgent(config, "leader-election")
	config.Timeout = renewDeadline / 2 // a request that hangs must not cost the leadership
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	identity := host + "_" + string(uuid.NewUUID())
	all := record.NewBroadcaster()
	all.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events(namespace)})
	locks := resourcelock.ResourceLockConfig{Identity: identity, EventRecorder: all.NewRecorder(clientgoscheme.Scheme, corev1.EventSource{Component: identity})}
	e := &shardElection{
		shard: o.Shard, id: cmp.Or(o.LeaderElectionID, DefaultLeaderElectionID), namespace: namespace, identity: identity, leases: client.CoordinationV1().Leases(namespace), log: o.Log,
		times: electionTimes{leaseDuration, renewDeadline, leaseRetry, leasePatience},
	}
	e.lock = func(name string) resourcelock.Interface {
		return &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Client: client.CoordinationV1(), LockConfig: locks}
	}
	return e.agreedLock(), nil
}

// agreedLock returns the lock of the shard, which nobody takes whose count is not the agreed one.
func (e *shardElection) agreedLock() resourcelock.Interface {
	return &agreedLock{Interface: e.lock(object.ShardLease(e.id, e.shard.Index)), election: e}
}

// An agreedLock is the lock of a shard.
type agreedLock struct {
	resourcelock.Interface

	election *shardElection

	mu sync.Mutex
	// agreed says that the count was the agreed one when it was looked at, and entered that this process has it so and holds the Lease.
	agreed, entered bool
}

// Get implements resourcelock.Interface. It waits until the count is the agreed one, and makes it that when it can.
func (l *agreedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if !l.isAgreed() {
		if err := l.election.await(ctx); err != nil {
			return nil, nil, err
		}
		l.set(true, false)
	}
	return l.Interface.Get(ctx)
}

// Create implements resourcelock.Interface.
func (l *agreedLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if err := l.Interface.Create(ctx, r); err != nil {
		return err
	}
	return l.enter(ctx, r)
}

// Update implements resourcelock.Interface.
func (l *agreedLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if err := l.Interface.Update(ctx, r); err != nil {
		return err
	}
	if r.HolderIdentity != l.Identity() { // it is given back
		l.set(true, false)
		return nil
	}
	return l.enter(ctx, r)
}

// enter says that this process serves, once for each time that it takes the Lease. It gives the Lease back if it may not.
func (l *agreedLock) enter(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	entered := l.entered
	l.mu.Unlock()
	if entered {
		return nil
	}
	err := l.election.enter(ctx)
	if err == nil {
		l.set(true, true)
		return nil
	}
	l.set(false, false)
	r.HolderIdentity, r.LeaseDurationSeconds = "", 1
	return errors.Join(err, l.Interface.Update(ctx, r))
}

func (l *agreedLock) isAgreed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.agreed
}

func (l *agreedLock) set(agreed, entered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.agreed, l.entered = agreed, entered
}

// read returns the Lease with the agreement, or nil if there is none yet, and the count: without one, there are no shards.
func (e *shardElection) read(ctx context.Context) (*coordinationv1.Lease, int, error) {
	u, err := e.leases.Get(ctx, object.SharedLease(e.id), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, 1, nil
	case err != nil:
		return nil, 0, fmt.Errorf("reading how many shards there are: %w", err)
	}
	count, err := strconv.Atoi(u.Annotations[shardsAnnotation])
	if err != nil || count < 1 || count > object.MaxShards {
		return nil, 0, fmt.Errorf("the annotation %s of the Lease %s/%s is %q, and should be 1 to %d", shardsAnnotation, e.namespace, u.Name, u.Annotations[shardsAnnotation], object.MaxShards)
	}
	return u, count, nil
}

// write writes an agreement over the one that was read, nil for none. It errors with Conflict or AlreadyExists if that is another one by now.
func (e *shardElection) write(ctx context.Context, over *coordinationv1.Lease) error {
	marks := map[string]string{shardsAnnotation: strconv.Itoa(e.shard.count()), enteredAnnotation: e.identity + " " + time.Now().UTC().Format(time.RFC3339Nano)}
	if over == nil {
		u := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: object.SharedLease(e.id), Annotations: marks}}
		_, err := e.leases.Create(ctx, u, metav1.CreateOptions{})
		return err
	}
	u := over.DeepCopy()
	for key, value := range marks {
		metav1.SetMetaDataAnnotation(&u.ObjectMeta, key, value)
	}
	_, err := e.leases.Update(ctx, u, metav1.UpdateOptions{})
	return err
}

// enterTries bounds how often it is tried to write what others of the same count write at the same time.
const enterTries = 10

// enter writes the agreement as it is, so that who means to change it by now cannot. It errors if the count is another one.
func (e *shardElection) enter(ctx context.Context) error {
	var err error
	for range enterTries {
		var present *coordinationv1.Lease
		var count int
		if present, count, err = e.read(ctx); err != nil {
			return e.unlessAlone(err)
		}
		if count != e.shard.count() {
			return errOtherCount
		}
		if err = e.write(ctx, present); err == nil || !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return e.unlessAlone(err)
		}
	}
	return err
}

// unlessAlone returns nil for a process without shards that may not look: the roles of early versions know of none.
func (e *shardElection) unlessAlone(err error) error {
	if apierrors.IsForbidden(err) && e.shard.count() == 1 {
		e.log.Info("whether another operator of this Lease has shards is not known: the operator may not read the Lease that says so; operetta rbac prints the role", "error", err.Error())
		return nil
	}
	return err
}

// await returns once the count is the agreed one, which it makes it when it can.
func (e *shardElection) await(ctx context.Context) error {
	said, refused := 0, false
	for {
		_, count, err := e.read(ctx)
		if err = e.unlessAlone(err); err != nil {
			return err
		}
		if count == e.shard.count() || count == 0 {
			return nil
		}
		if said != count {
			e.log.Info("nothing is served until all processes of the other number of shards have ended", "shards", e.shard.count(), "agreed", count)
			said = count
		}
		if err := e.change(ctx, count); err != nil && ctx.Err() == nil {
			e.log.V(1).Info("the number of shards is not changed yet", "why", err.Error())
			if apierrors.IsForbidden(err) && !refused {
				e.log.Info("the operator may not take the Lease of each shard, so it cannot change their number; operetta rbac --shards prints the role", "shards", e.shard.count(), "agreed", count, "error", err.Error())
				refused = true
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait.Jitter(e.times.retry, 1)):
		}
	}
}

// change makes the count the agreed one while this process holds the Leases of all shards of another count. It takes them in order, so
// that of several processes one gets all, and gives up if one is not free in time: then its process may serve on. The agreement is
// read first: whoever begins to serve from then on, also after the Leases held here have expired, writes it.
func (e *shardElection) change(ctx context.Context, from int) error {
	present, count, err := e.read(ctx)
	if err != nil {
		return err
	}
	if count != from {
		return errOtherCount
	}
	ctx, cancel := context.WithCancel(ctx)
	var held sync.WaitGroup
	defer held.Wait()
	defer cancel()
	held.Go(func() { e.follow(ctx, from, cancel) })
	for i := range from {
		if err := e.hold(ctx, cancel, &held, object.ShardLease(e.id, i)); err != nil {
			return err
		}
	}
	if err := e.write(ctx, present); err != nil {
		return err
	}
	e.log.Info("the number of shards has changed", "shards", e.shard.count(), "was", from)
	return nil
}

// follow ends a change of the agreement when somebody else has made one.
func (e *shardElection) follow(ctx context.Context, from int, cancel context.CancelFunc) {
	tick := time.NewTicker(e.times.retry)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, count, err := e.read(ctx); err == nil && count != from {
			cancel()
			return
		}
	}
}

// hold takes a Lease, and holds it until the context ends. It cancels the context when it loses the Lease.
func (e *shardElection) hold(ctx context.Context, cancel context.CancelFunc, held *sync.WaitGroup, name string) error {
	took := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: e.lock(name), LeaseDuration: e.times.lease, RenewDeadline: e.times.renew, RetryPeriod: e.times.retry, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { close(took) }, OnStoppedLeading: cancel},
	})
	if err != nil {
		return err
	}
	quiet := logr.NewContext(ctx, logr.Discard()) // it is tried again and again
	held.Go(func() { elector.Run(quiet) })
	select {
	case <-took:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(e.times.patience):
		if _, err := e.leases.Get(ctx, name, metav1.GetOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Lease %s/%s cannot be taken: %w", e.namespace, name, err)
		}
		return fmt.Errorf("the Lease %s/%s is held", e.namespace, name)
	}
}
