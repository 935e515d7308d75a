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
//   - A process that has taken its Lease reads the agreement, and writes it as it is. If the count is another one, it gives the Lease back.
//   - A process with another count than the agreed one changes the agreement, once it holds the Leases of all shards of the agreed
//     count itself: then nobody serves. The write has the version that it read before it took the first one, so it fails if somebody
//     has begun to serve since, because its Leases had expired.
//   - The agreement may be deleted. A shard looks at it before each renewal, writes it again if it is gone, and gives its Lease back
//     if it is another one. A process that finds none makes one only after the time in which a shard that serves had to have done that.
//
// So no two processes of different counts ever serve at a time, however they are started, and two of one count have different
// shards. What a deposed leader has sent already is as late as with any leader election.

// The annotations of the Lease with the agreement: the count, and who has begun to serve by it last, and when. Without the
// time, a process that begins twice would write nothing the second time, and the version would stay.
const (
	shardsAnnotation  = "operetta.dev/shards"
	enteredAnnotation = "operetta.dev/entered"
)

var (
	// errOtherCount says that another number of shards is agreed on.
	errOtherCount = errors.New("another number of shards is agreed on")
	// errNoCount says that none is agreed on any more.
	errNoCount = errors.New("the Lease that says how many shards there are is gone")
)

// An agreement is how many shards there are.
type agreement struct {
	count int
	// early says that the Leases of the shards have the names that an early version gave them, which are those of other operators as well.
	early bool
}

// agreement returns the agreement that a process makes.
func (s Shard) agreement() agreement { return agreement{count: s.count()} }

// lease returns the name of the Lease of a shard.
func (a agreement) lease(id string, shard int) string {
	if a.early && shard > 0 {
		return id + "-" + strconv.Itoa(shard)
	}
	return object.ShardLease(id, shard)
}

// namedShards is what follows the count in an annotation, except for one shard: an early version, which does not know the names of
// the Leases, cannot read it, and serves nothing.
const namedShards = "shards"

// String returns the text of the annotation.
func (a agreement) String() string {
	if a.count == 1 || a.early {
		return strconv.Itoa(a.count)
	}
	return strconv.Itoa(a.count) + " " + namedShards
}

// parseAgreement reads the text of the annotation.
func parseAgreement(text string) (agreement, error) {
	number, rest, named := strings.Cut(text, " ")
	count, err := strconv.Atoi(number)
	if err != nil || count < 1 || count > object.MaxShards || named && rest != namedShards {
		return agreement{}, fmt.Errorf("%q is not a number from 1 to %d with the word %s", text, object.MaxShards, namedShards)
	}
	return agreement{count: count, early: count > 1 && !named}, nil
}

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
	// logUnknownOnce has it said once that others are not known.
	logUnknownOnce sync.Once
}

// electionTimes are those of the library, and how long a Lease is waited for while others are held.
type electionTimes struct{ lease, renew, retry, patience time.Duration }

// podNamespaceFile has the namespace of the pod that the process runs in.
const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// newElection returns the lock of the leader election of a process, which knows whom it waits for.
func newElection(config *rest.Config, o Options) (*notedLock, error) {
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
	return e.notedLock(), nil
}

// agreedLock returns the lock of the shard, which nobody takes whose count is not the agreed one.
func (e *shardElection) agreedLock() resourcelock.Interface {
	return &agreedLock{Interface: e.ownLock(object.ShardLease(e.id, e.shard.Index)), election: e}
}

// An agreedLock is the lock of a shard.
type agreedLock struct {
	resourcelock.Interface

	election *shardElection

	mu sync.Mutex
	// agreed says that the count was the agreed one when it was looked at, and entered that this process has it so and holds the Lease.
	agreed, entered bool
}

// Get implements resourcelock.Interface. It waits until the count is the agreed one, and makes it that when it can. A process that may read
// no Lease at all has no role of an early version, so it looks at the agreement again: if it took its Lease without one, it could not tell
// later that nobody else has taken it before.
func (l *agreedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if !l.isAgreed() {
		if err := l.election.await(ctx); err != nil {
			return nil, nil, err
		}
		l.set(true, false)
	}
	r, raw, err := l.Interface.Get(ctx)
	if apierrors.IsForbidden(err) && !l.hasEntered() {
		l.set(false, false)
	}
	return r, raw, err
}

// Create implements resourcelock.Interface.
func (l *agreedLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if l.hasEntered() { // the Lease was deleted
		if err := l.election.confirm(ctx); err != nil {
			return l.leave(ctx, r, err)
		}
	}
	if err := l.Interface.Create(withRenewal(ctx, time.Now()), r); err != nil {
		return err
	}
	return l.enter(ctx, r)
}

// Update implements resourcelock.Interface.
func (l *agreedLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if r.HolderIdentity != l.Identity() { // it is given back
		l.set(true, false)
		return l.Interface.Update(withReturn(ctx), r)
	}
	began := time.Now() // what is looked at before the request is as old as that
	if l.hasEntered() {
		if err := l.election.confirm(ctx); err != nil {
			return l.leave(ctx, r, err)
		}
	}
	if err := l.Interface.Update(withRenewal(ctx, began), r); err != nil {
		return err
	}
	return l.enter(ctx, r)
}

// leave returns why the Lease is not renewed. It gives the Lease back if another number of shards is agreed on.
func (l *agreedLock) leave(ctx context.Context, r resourcelock.LeaderElectionRecord, why error) error {
	if !errors.Is(why, errOtherCount) {
		return why // it may pass, and the Lease expires if not
	}
	l.set(false, false)
	return errors.Join(why, l.giveBack(ctx, r))
}

// giveBack gives the Lease back.
func (l *agreedLock) giveBack(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	r.HolderIdentity, r.LeaseDurationSeconds = "", 1
	return l.Interface.Update(withReturn(ctx), r)
}

// enter says that this process serves, once for each time that it takes the Lease. It gives the Lease back if it may not.
func (l *agreedLock) enter(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if l.hasEntered() {
		return nil
	}
	err := l.election.enter(ctx)
	if err == nil {
		l.set(true, true)
		return nil
	}
	l.set(false, false)
	return errors.Join(err, l.giveBack(ctx, r))
}

func (l *agreedLock) hasEntered() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entered
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

// read returns the Lease with the agreement, or nil if there is none: then it is that there are no shards, unless they write it again.
func (e *shardElection) read(ctx context.Context) (*coordinationv1.Lease, agreement, error) {
	u, err := e.leases.Get(ctx, object.SharedLease(e.id), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, agreement{count: 1}, nil
	case err != nil:
		return nil, agreement{}, fmt.Errorf("reading how many shards there are: %w", err)
	}
	agreed, err := parseAgreement(u.Annotations[shardsAnnotation])
	if err != nil {
		return nil, agreement{}, fmt.Errorf("the annotation %s of the Lease %s/%s: %w", shardsAnnotation, e.namespace, u.Name, err)
	}
	return u, agreed, nil
}

// write writes an agreement over the one that was read, nil for none. It errors with Conflict or AlreadyExists if that is another one by now.
func (e *shardElection) write(ctx context.Context, over *coordinationv1.Lease) error {
	marks := map[string]string{shardsAnnotation: e.shard.agreement().String(), enteredAnnotation: e.identity + " " + time.Now().UTC().Format(time.RFC3339Nano)}
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

// enter writes the agreement as it is, so that who means to change it by now cannot. It errors if there is none, or another one.
func (e *shardElection) enter(ctx context.Context) error {
	var err error
	for range enterTries {
		var present *coordinationv1.Lease
		var agreed agreement
		if present, agreed, err = e.read(ctx); err != nil {
			return e.unlessAlone(err)
		}
		switch {
		case present == nil:
			return errNoCount
		case agreed != e.shard.agreement():
			return errOtherCount
		}
		if err = e.write(ctx, present); err == nil || !apierrors.IsConflict(err) {
			return e.unlessAlone(err)
		}
	}
	return err
}

// confirm errors if the agreement is another one than that by which a shard serves. One that was deleted is written
// again: no other process has changed it as long as the Lease of the shard is held.
func (e *shardElection) confirm(ctx context.Context) error {
	if e.shard.count() == 1 {
		return nil // who changes the number has to take the only Lease
	}
	present, agreed, err := e.read(ctx)
	switch {
	case err != nil:
		return err
	case present == nil:
		e.log.Info("the Lease that records the number of shards was deleted; it is written again", "lease", object.SharedLease(e.id), "shards", e.shard.count())
		return e.write(ctx, nil) // if it is there by now, the next renewal sees which
	case agreed != e.shard.agreement():
		return errOtherCount
	}
	return nil
}

// unlessAlone returns nil for a process without shards that may not look: the roles of early versions know of none.
func (e *shardElection) unlessAlone(err error) error {
	if apierrors.IsForbidden(err) && e.shard.count() == 1 {
		e.logUnknownOnce.Do(func() {
			e.log.Info("whether another operator of this Lease has shards is not known: the operator may not read the Lease that says so; operetta rbac prints the role", "error", err.Error())
		})
		return nil
	}
	return err
}

// await returns once the count is the agreed one, which it makes it when it can.
func (e *shardElection) await(ctx context.Context) error {
	var missing time.Time // since when there is no agreement
	said := agreementLog{election: e}
	for {
		present, agreed, err := e.read(ctx)
		switch {
		case err != nil:
			return e.unlessAlone(err)
		case present != nil && agreed == e.shard.agreement():
			return nil
		case present != nil:
			missing = time.Time{}
			said.waits(agreed)
			err = e.change(ctx, agreed)
		default:
			if missing.IsZero() {
				missing = time.Now()
			}
			err = e.begin(ctx, missing)
		}
		if err == nil {
			continue // it is looked at again
		}
		if ctx.Err() == nil {
			said.fails(agreed, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait.Jitter(e.times.retry, 1)):
		}
	}
}

// agreementLog is what was said about an agreement that is another one: each only once.
type agreementLog struct {
	election *shardElection
	other    agreement
	refused  bool
}

// waits says that the processes of another agreement are waited for.
func (s *agreementLog) waits(agreed agreement) {
	if s.other == agreed {
		return
	}
	s.other = agreed
	s.election.log.Info("nothing is served until all processes of the other number of shards have ended", "shards", s.election.shard.count(), "agreed", agreed.count)
}

// fails says why the agreement is not changed.
func (s *agreementLog) fails(agreed agreement, why error) {
	s.election.log.V(1).Info("the number of shards is not changed yet", "why", why.Error())
	if !apierrors.IsForbidden(why) || s.refused {
		return
	}
	s.refused = true
	s.election.log.Info("the operator may not take the Lease of each shard, so it cannot change their number; operetta rbac prints the role", "shards", s.election.shard.count(), "agreed", agreed.count, "error", why.Error())
}

// errUndecided says that a process may serve although there is no agreement.
var errUndecided = errors.New("the Lease that says how many shards there are is missing, and shards that serve may be about to write it anew")

// begin makes the first agreement. There is none before an operator runs for the first time, and after it was deleted. A shard
// that serves writes it again then; if none has for as long as it may serve without that, none does.
func (e *shardElection) begin(ctx context.Context, missing time.Time) error {
	_, err := e.leases.Get(ctx, e.id, metav1.GetOptions{})
	if ran := !apierrors.IsNotFound(err); ran && time.Since(missing) < e.times.lease {
		return errUndecided
	}
	if e.shard.count() > 1 {
		return e.change(ctx, agreement{count: 1}) // an operator of an early version has only the Lease of shard 0
	}
	return e.write(ctx, nil)
}

// change makes the count the agreed one while this process holds the Leases of all shards of another count. It takes them in order, so
// that of several processes one gets all, and gives up if one is not free in time: then its process may serve on. The agreement is
// read first: a shard that begins to serve from then on, also after the Leases held here have expired, writes it.
func (e *shardElection) change(ctx context.Context, from agreement) error {
	present, agreed, err := e.read(ctx)
	if err != nil {
		return err
	}
	if agreed != from {
		return errOtherCount
	}
	ctx, cancel := context.WithCancel(ctx)
	var held sync.WaitGroup
	defer held.Wait()
	defer cancel()
	held.Go(func() { e.cancelWhenChanged(ctx, from, cancel) })
	for i := range from.count {
		if err := e.hold(ctx, cancel, &held, from.lease(e.id, i)); err != nil {
			return err
		}
	}
	if err := e.write(ctx, present); err != nil {
		return err
	}
	e.log.Info("the number of shards has changed", "shards", e.shard.count(), "was", from.count)
	return nil
}

// cancelWhenChanged ends a change of the agreement when somebody else has made one.
func (e *shardElection) cancelWhenChanged(ctx context.Context, from agreement, cancel context.CancelFunc) {
	if wait.PollUntilContextCancel(ctx, e.times.retry, false, func(ctx context.Context) (bool, error) {
		_, agreed, err := e.read(ctx)
		return err == nil && agreed != from, nil
	}) == nil {
		cancel()
	}
}

// hold takes a Lease, and holds it until the context ends. It cancels the context when it loses the Lease.
func (e *shardElection) hold(ctx context.Context, cancel context.CancelFunc, held *sync.WaitGroup, name string) error {
	took := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: e.ownLock(name), LeaseDuration: e.times.lease, RenewDeadline: e.times.renew, RetryPeriod: e.times.retry, ReleaseOnCancel: true,
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
