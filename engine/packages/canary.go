package packages

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// A CanarySpec says which resources get a changed content first, and when the others follow.
type CanarySpec struct {
	// Share is a share of the resources, such as 10%, and Selector selects them by labels. One of them is set.
	Share    string                `json:"share,omitempty"`
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// ReadyFor is how long all of them have to be ready without a break; nil is defaultCanaryReadyFor.
	ReadyFor *metav1.Duration `json:"readyFor,omitempty"`
	// Deadline is how long each of them may take to become ready once it has the content; nil is defaultCanaryDeadline.
	Deadline *metav1.Duration `json:"deadline,omitempty"`
}

// check errors if the spec is none that the CustomResourceDefinition describes.
func (c *CanarySpec) check() error {
	if c == nil {
		return nil
	}
	if (c.Share == "") == (c.Selector == nil) {
		return errors.New("canary: one of share and selector has to be set")
	}
	if c.Selector != nil {
		if _, err := metav1.LabelSelectorAsSelector(c.Selector); err != nil {
			return fmt.Errorf("canary.selector: %w", err)
		}
	} else if _, err := c.percent(); err != nil {
		return err
	}
	if c.readyFor() < 0 || c.deadline() <= 0 {
		return errors.New("canary: readyFor is not negative, and deadline is more than 0s")
	}
	return nil
}

// percent returns the share in percent.
func (c *CanarySpec) percent() (int, error) {
	text, ok := strings.CutSuffix(c.Share, "%")
	n, err := strconv.Atoi(text)
	if !ok || err != nil || n < 1 || n > 100 {
		return 0, fmt.Errorf("canary.share: %q is not between 1%% and 100%%", c.Share)
	}
	return n, nil
}

// most returns how many of some resources are a share of them: it is rounded up, so it is at least one of one.
func (c *CanarySpec) most(all int) int {
	percent, _ := c.percent() // check has read it
	return (all*percent + 99) / 100
}

func (c *CanarySpec) readyFor() time.Duration {
	if c.ReadyFor == nil {
		return defaultCanaryReadyFor
	}
	return c.ReadyFor.Duration
}

func (c *CanarySpec) deadline() time.Duration {
	if c.Deadline == nil {
		return defaultCanaryDeadline
	}
	return c.Deadline.Duration
}

// A CanaryPhase is how far the canary of a content is.
type CanaryPhase string

// The phases.
const (
	// CanaryProgressing: not all resources of the canary are ready with the content.
	CanaryProgressing CanaryPhase = "Progressing"
	// CanaryReady: all of them are, and have to be for some time.
	CanaryReady CanaryPhase = "Ready"
	// CanaryPromoted: the content is served to all resources.
	CanaryPromoted CanaryPhase = "Promoted"
	// CanaryRolledBack: the content is served to none.
	CanaryRolledBack CanaryPhase = "RolledBack"
)

// A canary is what is known of the canary of a content. It is a value: what follows from it is another one. The
// status of the Package has it for a process that starts.
type canary struct {
	// from and digest are those of the version that the others have, and of the content.
	from, digest string
	phase        CanaryPhase
	// began is when it began, readySince since when all of its resources are ready, and ended when it ended; zero if
	// that is not so.
	began, readySince, ended time.Time
	// resumed is when this process began to judge it, if another one began it: what the resources say by then is from before, and
	// nobody has reconciled them while nobody decided.
	resumed time.Time
	// share is the share that cutoff is for: the resources up to that hash get the content. cutoff is nil while no
	// resource can be chosen.
	share  string
	cutoff *uint64
	// selector selects resources if no share does; nil selects none.
	selector labels.Selector
	// restored says that it is known by the status alone, so that no resource gets the content that has not got it before.
	restored bool
	// since is from when on each of its resources, by UID, has to become ready: it was last seen ready then, or without the content.
	// The process knows it alone.
	since map[types.UID]time.Time
	// judged is what the status keeps for the next process.
	judged judged
	// spent is for how long the processes before have judged it.
	spent time.Duration
	// total and ready count its resources, and late those of them that have had the content for too long without being ready.
	total, ready, late int
	// unready are those that are not, the first of them.
	unready []unready
	// why says why it has gone back.
	why string
}

// An unready resource is one of a canary that is not ready, with the reason.
type unready struct{ resource, reason string }

// judged is for how long processes have judged a canary, without the time in which none did. It is noted now and then.
type judged struct {
	// at is when it was noted last, and total how long that was.
	at    time.Time
	total time.Duration
	// waited is for how long each resource, by name, had not been ready with the content.
	waited map[string]time.Duration
}

// canaryNotes is how often it is noted within the deadline of a canary for how long that has been judged, at least.
const canaryNotes = 10

// canaryOverdue is how many deadlines processes have to have judged a canary for before another one has little time left.
const canaryOverdue = 2

// maxUnready is how many resources a canary lists.
const maxUnready = 20

// inProgress reports whether some resources may have the content, and others not.
func (c *canary) inProgress() bool {
	return c != nil && (c.phase == CanaryProgressing || c.phase == CanaryReady)
}

// is reports whether it is that of a content.
func (c *canary) is(digest string) bool { return c != nil && c.digest == digest }

// A canaryAction is what is to become of a canary.
type canaryAction int

// The actions.
const (
	// continueCanary: it is not decided yet.
	continueCanary canaryAction = iota
	// promoteCanary: all resources may have the content.
	promoteCanary
	// rollBackCanary: no resource may have it.
	rollBackCanary
)

// follow returns what a canary is now, and what is to become of it. It is a function of what it is given.
func (c canary) follow(spec *CanarySpec, all []Resource, now time.Time) (canary, canaryAction) {
	all = slices.DeleteFunc(slices.Clone(all), func(u Resource) bool { return u.Deleted })
	if c.restored {
		c.resumed, c.spent = now, c.judged.total
	}
	c = c.choose(spec, all)
	failed, changed, waits := c.count(all, spec.deadline(), now)
	switch {
	case len(all) == 0:
		return c.turn(CanaryReady, now), promoteCanary // there is nobody whom the content could harm
	case failed > 0:
		c.why = failedText(failed)
		return c, rollBackCanary
	case c.total > 0 && c.ready == c.total:
		c = c.turn(CanaryReady, now)
		c.readySince = latest(c.readySince, changed)
		if now.Sub(c.readySince) >= spec.readyFor() {
			return c, promoteCanary
		}
		return c, continueCanary
	}
	c = c.turn(CanaryProgressing, now)
	if c.late == 0 && (c.total > 0 || c.carried(c.spent, spec.deadline())+c.present(now) < spec.deadline()) {
		return c.note(waits, spec.deadline(), now), continueCanary // one that is not reconciled yet says nothing about the content
	}
	c.why = fmt.Sprintf("%d of %d resources are ready after %s", c.ready, c.total, spec.deadline())
	if c.total == 0 {
		c.why = fmt.Sprintf("no resource could be tried within %s: none of those that may be chosen is ready with %s", spec.deadline(), c.from)
	}
	return c, rollBackCanary
}

// present returns for how long this process has judged the canary.
func (c canary) present(now time.Time) time.Duration { return now.Sub(latest(c.began, c.resumed)) }

// carried returns how much of a deadline counts of a time that was spent before this process: some is left in any case, for nobody has
// reconciled the resources meanwhile. Little is left if all processes together have judged the canary for far longer than the
// deadline: then none of them lives for long enough.
func (c canary) carried(spent, deadline time.Duration) time.Duration {
	grace := canaryGrace
	if c.spent >= canaryOverdue*deadline {
		grace = canaryLeastGrace
	}
	return min(spent, deadline-min(grace, deadline/canaryNotes))
}

// note notes for how long the canary has been judged, unless that was noted a moment ago: the status is written each time. A process that
// has just begun notes it sooner, as it may not live for long.
func (c canary) note(waits map[string]time.Duration, deadline time.Duration, now time.Time) canary {
	present := c.present(now)
	noted := max(0, present-now.Sub(c.judged.at)) // how long this process had judged it when it noted that last
	pause := min(max(noted, canaryNotedFirst), canaryNoted)
	if present-noted >= min(pause, deadline/canaryNotes) {
		c.judged = judged{at: now, total: c.spent + present, waited: waits}
		return c
	}
	was := c.judged.waited
	c.judged.waited = map[string]time.Duration{}
	for name := range waits {
		c.judged.waited[name] = was[name]
	}
	return c
}

func failedText(n int) string {
	if n == 1 {
		return "1 resource has failed"
	}
	return fmt.Sprintf("%d resources have failed", n)
}

// latest returns the later one of two times.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// turn returns the canary in a phase, and notes since when its resources are ready.
func (c canary) turn(to CanaryPhase, now time.Time) canary {
	switch to {
	case CanaryReady:
		if c.readySince.IsZero() {
			c.readySince = now
		}
	case CanaryProgressing:
		c.readySince = time.Time{}
	case CanaryPromoted, CanaryRolledBack:
		c.ended = now
	}
	c.phase = to
	return c
}

// count counts the resources of the canary. It returns how many of them have failed, when the last one of those
// that are ready has become so, and for how long those have waited that have the content and are not ready.
func (c *canary) count(all []Resource, deadline time.Duration, now time.Time) (failed int, changed time.Time, waits map[string]time.Duration) {
	var worst, waiting []unready
	since := map[types.UID]time.Time{}
	waits = map[string]time.Duration{}
	c.total, c.ready, c.late, c.unready = 0, 0, 0, nil
	for _, u := range all {
		has := u.Digest == c.digest
		if !c.selects(u) || !has && (u.Paused || u.Pin != "") {
			continue // a user who pauses what has got the content does not make it ready
		}
		c.total++
		since[u.UID] = c.sinceOf(u, has, deadline, now)
		switch {
		case has && u.Failed:
			worst = append(worst, unready{u.String(), u.Reason})
		case has && u.Ready:
			c.ready++
			changed = latest(changed, u.Changed)
		case has:
			waiting = append(waiting, unready{u.String(), u.Reason})
			waits[u.String()] = now.Sub(since[u.UID])
			if waits[u.String()] >= deadline {
				c.late++
			}
		default:
			waiting = append(waiting, unready{u.String(), "NotReconciled"})
		}
	}
	for _, list := range [][]unready{worst, waiting} {
		slices.SortFunc(list, func(a, b unready) int { return strings.Compare(a.resource, b.resource) })
		c.unready = append(c.unready, list...)
	}
	c.since, c.unready = since, c.unready[:min(len(c.unready), maxUnready)]
	if changed.After(now) {
		changed = now // who writes a status may write any time
	}
	return len(worst), changed, waits
}

// sinceOf returns from when on a resource has to become ready. Its condition counts only when it is seen for the first time: who writes
// a status may write any time. It counts from when this process judges the canary at the earliest, and what a process before has
// noted: one that was kept from becoming ready by an outage alone would be late before anybody has reconciled it.
func (c *canary) sinceOf(u Resource, has bool, deadline time.Duration, now time.Time) time.Time {
	known, ok := c.since[u.UID]
	switch {
	case !has || u.Ready:
		return now
	case ok:
		return known
	case u.Changed.After(now):
		return now
	}
	from := latest(c.began, c.resumed)
	if c.since == nil && !u.Changed.After(c.judged.at) {
		from = from.Add(-c.carried(c.judged.waited[u.String()], deadline))
	}
	return latest(from, u.Changed)
}

// chosen reports whether a resource is among those that may get the content.
func (c canary) chosen(u Resource) bool {
	if c.selector != nil {
		return c.selector.Matches(labels.Set(u.Labels))
	}
	return c.cutoff != nil && hashOf(u.UID) <= *c.cutoff
}

// selects reports whether a resource is reconciled with the content. One that is not ready with the version before says
// nothing about the content: it is left alone until it is. One that has got the content keeps it, also if its user takes
// a label away: otherwise one that is not ready would not count any more, and the others would get the content.
func (c canary) selects(u Resource) bool {
	if u.Digest == c.digest {
		return c.selector != nil || c.chosen(u)
	}
	return c.chosen(u) && !c.restored && u.eligible()
}

// eligible reports whether a resource can be chosen for a canary.
func (u Resource) eligible() bool {
	return u.Ready && !u.Failed && !u.Paused && !u.Deleted && u.Pin == ""
}

// hashOf returns a number that a resource always has, so that it is the same resources that are chosen in every process.
func hashOf(uid types.UID) uint64 {
	sum := sha256.Sum256([]byte(uid))
	return binary.BigEndian.Uint64(sum[:])
}

// choose determines which resources get the content. What is chosen once stays chosen, because a resource must not go to and
// fro between two versions when others come and go. What the status says after a restart counts only within the share.
func (c canary) choose(spec *CanarySpec, all []Resource) canary {
	if spec.Selector != nil {
		c.selector, _ = metav1.LabelSelectorAsSelector(spec.Selector) // check has read it
		c.share, c.cutoff, c.restored = "", nil, false
		return c
	}
	var hashes []uint64
	had := false
	for _, u := range all {
		if u.eligible() || u.Digest == c.digest {
			hashes = append(hashes, hashOf(u.UID))
			had = had || c.chosen(u)
		}
	}
	if had && c.share == spec.Share && !c.restored {
		return c
	}
	if len(hashes) == 0 {
		c.selector, c.share, c.cutoff, c.restored = nil, spec.Share, nil, false
		return c
	}
	slices.SortFunc(hashes, cmp.Compare[uint64])
	limit := hashes[min(spec.most(len(all)), len(hashes))-1]
	if c.restored && had && c.share == spec.Share {
		limit = min(limit, *c.cutoff)
	}
	c.selector, c.share, c.cutoff, c.restored = nil, spec.Share, &limit, false
	return c
}
