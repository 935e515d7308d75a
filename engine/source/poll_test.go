package source_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/source"
	"operetta.dev/test/machine"
)

// version returns a snapshot of a package whose only difference is some text.
func version(t testing.TB, text string) *source.Snapshot {
	t.Helper()
	s, err := source.Loader{}.Module("x", "", ".", tree(t, "-- x.cue --\npackage x\n\n// "+text+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// errGone and errOther are what reading a package may end in.
var (
	errGone  = errors.New("gone")
	errOther = errors.New("other")
)

// watched are what a package reads as, reading by reading, and what is reported: the
// text of a version, or of an error. The last reading repeats.
var watched = map[string]struct {
	reason   string
	readings []string
	want     []string
}{
	"nothing is reported while nothing changes": {
		"at rest nothing happens", []string{"a", "a", "a"}, nil,
	},
	"an edit is reported once": {
		"a new version is swapped in once", []string{"a", "b", "b", "b", "b"}, []string{"b"},
	},
	"a half written file is not a version": {
		"two readings have to agree", []string{"a", "half", "b", "b", "b"}, []string{"b"},
	},
	"a file that is written for long is not a version": {
		"as long as each reading differs", []string{"half", "b", "half", "b", "half", "a", "a"}, nil,
	},
	"going back is a change as well": {
		"an author reverts", []string{"b", "b", "a", "a"}, []string{"b", "a"},
	},
	"a package that cannot be read is reported": {
		"the author sees why nothing changes", []string{"gone", "gone", "gone"}, []string{"gone"},
	},
	"another error is another report": {
		"the message is about what is wrong now", []string{"gone", "gone", "other", "other"}, []string{"gone", "other"},
	},
	"one failed reading is not reported": {
		"editors replace files by renaming", []string{"gone", "a", "a"}, nil,
	},
	"a package that can be read again is reported": {
		"also when it is the same one: the error is over", []string{"gone", "gone", "a", "a"}, []string{"gone", "a"},
	},
}

// The clock is synctest's, so that the readings take no time.
func TestWatch(t *testing.T) {
	t.Parallel()
	versions, names := map[string]*source.Snapshot{}, map[string]string{}
	for _, text := range []string{"a", "b", "half"} {
		v := version(t, text)
		versions[text], names[v.Digest()] = v, text
	}
	failures := map[string]error{"gone": errGone, "other": errOther}
	for name, c := range watched {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				next := 0
				read := func() (*source.Snapshot, error) {
					r := c.readings[min(next, len(c.readings)-1)]
					if next++; next > len(c.readings)+3 {
						cancel()
					}
					return versions[r], failures[r]
				}
				source.Watch(ctx, versions["a"].Digest(), source.Final, read, func(s *source.Snapshot, err error) source.Outcome {
					if err != nil {
						got = append(got, err.Error())
						return source.Final
					}
					got = append(got, names[s.Digest()])
					return source.Final
				})
			})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// A version to be retried is passed on again, whatever became of it at first, until its outcome is final or another version comes.
func TestWatchPassesAVersionToRetryAgain(t *testing.T) {
	t.Parallel()
	a, b := version(t, "a"), version(t, "b")
	for name, tc := range map[string]struct {
		reason string
		first  source.Outcome
		// is says which version there is after so many seconds, and outcomes what becomes of each that is passed on.
		is       func(seconds int) *source.Snapshot
		outcomes []source.Outcome
		want     []string
	}{
		"final at first": {"nothing is to be tried", source.Final, func(int) *source.Snapshot { return a }, nil, nil},
		"retried at first": {
			"it is tried every 30 seconds, until it is served", source.Retry, func(int) *source.Snapshot { return a },
			[]source.Outcome{source.Retry, source.Final}, []string{"30 a", "60 a"},
		},
		"retried soon": {
			"a permission may be granted at any time", source.RetrySoon, func(int) *source.Snapshot { return a },
			[]source.Outcome{source.RetrySoon, source.Retry, source.Final}, []string{"2 a", "4 a", "34 a"},
		},
		"retried later": {
			"a new version is to be retried, and is", source.Final, func(s int) *source.Snapshot {
				if s < 10 {
					return a
				}
				return b
			},
			[]source.Outcome{source.Retry, source.Final}, []string{"10 b", "40 b"},
		},
		"replaced": {
			"the version that was to be retried is not there any more", source.Retry, func(s int) *source.Snapshot {
				if s < 10 {
					return a
				}
				return b
			},
			[]source.Outcome{source.Final}, []string{"10 b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			names := map[string]string{a.Digest(): "a", b.Digest(): "b"}
			var got []string
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
				defer cancel()
				began := time.Now()
				seconds := func() int { return int(time.Since(began).Seconds()) }
				source.Watch(ctx, a.Digest(), tc.first, func() (*source.Snapshot, error) { return tc.is(seconds()), nil }, func(s *source.Snapshot, _ error) source.Outcome {
					got = append(got, fmt.Sprintf("%d %s", seconds(), names[s.Digest()]))
					return tc.outcomes[len(got)-1]
				})
			})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// The real clock and the real file system, once.
func TestWatchSeesAnEditOnDisk(t *testing.T) {
	t.Parallel()
	dir := onDisk(t, "-- x.cue --\npackage x\n")
	read := func() (*source.Snapshot, error) { return source.Loader{}.Folder(dir) }
	first, err := read()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), machine.Patience)
	defer cancel()
	changed := make(chan *source.Snapshot)
	go source.Watch(ctx, first.Digest(), source.Final, read, func(s *source.Snapshot, err error) source.Outcome {
		if err != nil {
			t.Errorf("reading: %v", err)
		}
		select {
		case changed <- s:
		case <-ctx.Done():
		}
		return source.Final
	})
	writeFile(t, dir+"/x.cue", "package x\n\ny: 1\n")
	select {
	case s := <-changed:
		if s.Digest() == first.Digest() {
			t.Error("the digest is the same")
		}
	case <-ctx.Done():
		t.Error("the edit was not seen")
	}
}
