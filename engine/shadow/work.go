package shadow

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/plan"
)

// enqueue lets resources be compared again, once no more events come in for a moment.
func (s *Shadow) enqueue(resources []cluster.Ref) {
	for _, ref := range resources {
		s.enqueueAfter(ref, debounce)
	}
}

// enqueueAfter lets a resource be compared again after a time, and at most once in compareInterval.
func (s *Shadow) enqueueAfter(ref cluster.Ref, delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.found[ref]
	if v == nil {
		v = &resourceState{}
		s.found[ref] = v
	}
	if v.waiting {
		return
	}
	v.waiting = true
	s.queue.AddAfter(ref, max(delay, compareInterval-time.Since(v.at)))
}

// work compares resources until the queue ends.
func (s *Shadow) work(ctx context.Context) {
	select { // what is said of a resource is to have all that belongs to it
	case <-s.ready:
	case <-ctx.Done():
	}
	for {
		ref, ended := s.queue.Get()
		if ended {
			return
		}
		s.begin(ref)
		s.compareOne(ctx, ref)
		s.end(ref)
		s.queue.Done(ref)
		s.printSummary()
	}
}

// begin notes that a resource is being compared: events from now on concern the next comparison.
func (s *Shadow) begin(ref cluster.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.found[ref]; v != nil {
		v.waiting, v.running, v.at = false, true, time.Now() // what comes meanwhile waits as long as what comes later
	}
}

// end notes that a resource has been compared.
func (s *Shadow) end(ref cluster.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.found[ref]; v != nil {
		v.running, v.at = false, time.Now()
	}
}

// compareOne compares one resource.
func (s *Shadow) compareOne(ctx context.Context, ref cluster.Ref) {
	s.mu.Lock()
	version, served := s.served[ref.GroupKind()]
	s.mu.Unlock()
	if !served {
		s.drop(ref)
		return
	}
	from := plan.NewLive(s.Cluster, nil)
	where := ref
	where.Version = version.Program.GroupVersionKind().Version
	cr, err := from.Get(ctx, where)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		s.report(ref, unreadable(version, ref, permissionOr(err, "get", ref.Namespace)))
		s.enqueueAfter(ref, retryInterval)
		return
	case cr == nil:
		s.drop(ref)
		return
	}
	out, read, err := s.guarded(ctx, version, from, cr)
	if err != nil || out.State == Unreadable {
		s.enqueueAfter(ref, retryInterval)
	}
	if err != nil {
		return // nobody was there to evaluate: what was said before holds
	}
	s.tracker.followReads(ctx, read)
	s.index.compared(ref, cr, read)
	s.report(ref, out)
}

// guarded compares a resource. A panic is a fault of this resource alone.
func (s *Shadow) guarded(ctx context.Context, version plan.Version, from *plan.Live, cr *unstructured.Unstructured) (out Resource, read *reads, err error) {
	ref := cluster.RefOf(cr)
	defer func() {
		if p := recover(); p != nil { // its text may have a value of a Secret
			out, read, err = unreadable(version, ref, errors.New("comparing it has panicked; please report this")), &reads{}, nil
		}
	}()
	return compare(ctx, settings{
		from: from, version: version, configMap: s.ConfigMap, dependents: s.index.dependents(cr.GetUID()), ignore: s.Ignore, now: time.Now(),
	}, cr)
}

// unreadable is a resource that cannot be compared.
func unreadable(version plan.Version, ref cluster.Ref, err error) Resource {
	return Resource{
		Package: version.Program.Name(), APIVersion: version.Program.GroupVersionKind().GroupVersion().String(), Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name,
		State: Unreadable, Problems: []plan.Problem{{Message: err.Error()}},
	}
}

// drop forgets a resource that does not exist, or whose kind nobody serves any more.
func (s *Shadow) drop(ref cluster.Ref) {
	s.mu.Lock()
	v := s.found[ref]
	delete(s.found, ref)
	s.mu.Unlock()
	if v == nil || v.state == "" {
		return
	}
	s.print.Lock()
	defer s.print.Unlock()
	s.Printer.Gone(ref.GroupKind(), ref.Namespace, ref.Name)
}

// report tells how a resource compares, if that has changed.
func (s *Shadow) report(ref cluster.Ref, r Resource) {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // it has nothing but texts and numbers
	}
	digest := sha256.Sum256(text)
	s.mu.Lock()
	v := s.found[ref]
	changed := v != nil && (v.state != r.State || v.digest != digest)
	if changed {
		v.state, v.digest = r.State, digest
		s.changes++
	}
	s.mu.Unlock()
	if !changed {
		return
	}
	s.print.Lock()
	defer s.print.Unlock()
	s.Printer.Resource(r)
}

// count counts the resources, and reports whether something is still to be compared.
func (s *Shadow) count() (out Summary, busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.found {
		out.add(v.state)
		busy = busy || v.waiting || v.running
	}
	return out, busy
}

// printSummary shows the summary if it has changed and nothing is to be compared, or has not been shown for long. It ends the
// Shadow once all are the same, if that is what was asked for.
func (s *Shadow) printSummary() {
	now, busy := s.count()
	s.print.Lock()
	if s.shownAt.IsZero() {
		s.shownAt = time.Now() // nothing has been compared at first
	}
	if now != s.shown && (!busy || time.Since(s.shownAt) > summaryInterval) {
		s.shown, s.shownAt = now, time.Now()
		s.Printer.Summary(now)
	}
	s.print.Unlock()
	if !s.UntilSame || busy || !now.IsDone() || !s.seesAll() {
		return
	}
	s.mu.Lock()
	fresh := s.scanned == s.changes
	s.mu.Unlock()
	if fresh {
		s.done()
		return
	}
	select { // what nobody watches may have changed since it was listed
	case s.scans <- struct{}{}:
	default:
	}
}

// seesAll reports whether the resources of all packages are seen by their last versions, and all that was read is watched as far as it can be.
func (s *Shadow) seesAll() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.served {
		if slices.ContainsFunc(s.homes(v), func(home place) bool { return s.tracker.state(home) != synced }) {
			return false
		}
	}
	return len(s.outdated) == 0 && s.tracker.isSettled()
}

// scanAll lists what nobody watches, at first, from time to time and when it is asked to.
func (s *Shadow) scanAll(ctx context.Context) {
	for ctx.Err() == nil && !s.tracker.isSettled() {
		select {
		case <-ctx.Done():
		case <-time.After(debounce):
		}
	}
	for first := true; ctx.Err() == nil; first = false {
		s.scan(ctx)
		if first {
			close(s.ready)
		}
		s.printSummary()
		select {
		case <-ctx.Done():
		case <-s.scans:
		case <-time.After(scanInterval):
		}
	}
}

// scan lists what nobody watches once.
func (s *Shadow) scan(ctx context.Context) {
	s.mu.Lock()
	began := s.changes
	s.mu.Unlock()
	kinds, err := s.Cluster.Kinds()
	var notListed []string
	if err == nil {
		notListed, err = s.tracker.scan(ctx, kinds)
	}
	if ctx.Err() != nil {
		return
	}
	s.noteNotListed(notListed, err)
	if err != nil {
		return // a scan that has seen all comes later
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scanned = began
}

// maxNotListed is how many kinds are named that may not be listed.
const maxNotListed = 5

// noteNotListed notes what a scan has not seen, if that has changed.
func (s *Shadow) noteNotListed(notListed []string, err error) {
	text := ""
	switch {
	case err != nil:
		text = "objects that only the other operator has are not all seen: " + err.Error()
	case len(notListed) > 0:
		named := strings.Join(notListed[:min(len(notListed), maxNotListed)], ", ")
		if more := len(notListed) - maxNotListed; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		text = "objects of these kinds that only the other operator has are not seen, because the permission is missing to list " + named
	}
	s.print.Lock()
	defer s.print.Unlock()
	if text != s.notListed && text != "" {
		s.Printer.Note(text)
	}
	s.notListed = text
}

// noteUnseen notes why a place is not watched, or nil once it is, if that has changed.
func (s *Shadow) noteUnseen(at place, err error) {
	s.mu.Lock()
	_, own := s.served[at.kind.GroupKind()]
	s.mu.Unlock()
	text := ""
	switch {
	case err == nil:
	case own:
		text = "no " + at.kind.Kind + " is compared, and it is tried again: " + whyUnseen(at, err)
	case !cluster.IsKindNotServed(err): // of such a kind there is nothing to be seen
		text = "changes of " + at.kind.Kind + " objects are seen late, and it is tried again: " + whyUnseen(at, err)
	}
	s.print.Lock()
	was := s.noted[at]
	s.noted[at] = text
	switch text {
	case was:
	case "":
		s.Printer.Note(at.kind.Kind + " is seen now")
	default:
		s.Printer.Note(text)
	}
	s.print.Unlock()
	s.printSummary() // this may have been the last watch that was waited for, also if it is refused
}
