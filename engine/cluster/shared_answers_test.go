package cluster

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A question is one that takes a time to be answered, and counts how often it is asked.
type question struct {
	takes time.Duration
	err   error
	asked atomic.Int32
}

func (q *question) ask(string) (string, error) {
	q.asked.Add(1)
	<-time.After(q.takes) // the clock is synctest's
	return "answer", q.err
}

func newQuestion(takes time.Duration, err error) (*question, *sharedAnswers[string, string]) {
	q := &question{takes: takes, err: err}
	return q, newSharedAnswers(time.Minute, 10*time.Second, 5*time.Second, q.ask)
}

func TestManyAskOnceAndHaveTheAnswerForATime(t *testing.T) {
	t.Parallel()
	failure := errors.New("no")
	for name, row := range map[string]struct {
		reason string
		err    error
		serves time.Duration
	}{
		"an answer": {"it changes seldom", nil, time.Minute},
		"an error":  {"the next one would fail as well, but not for long", failure, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q, answers := newQuestion(time.Second, row.err)
				for asks := range int32(2) {
					var all sync.WaitGroup
					for range 100 {
						all.Go(func() {
							if got, err := answers.get(t.Context(), "key"); got != "answer" || !errors.Is(err, row.err) {
								t.Errorf("got %q and error %v", got, err)
							}
						})
					}
					all.Wait()
					<-time.After(row.serves - time.Second)
					_, _ = answers.get(t.Context(), "key")
					if n := q.asked.Load(); n != asks+1 {
						t.Errorf("%s: asked %d times, want %d", row.reason, n, asks+1)
					}
					<-time.After(2 * time.Second)
				}
			})
		})
	}
}

func TestASlowAnswerDelaysNobodyForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, answers := newQuestion(8*time.Second, nil)
		hurried, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := answers.get(hurried, "key"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("error %v after %s: it has no more time", err, time.Since(began))
		}
		if _, err := answers.get(t.Context(), "key"); !errors.Is(err, errNoAnswer) || time.Since(began) != 6*time.Second {
			t.Errorf("error %v after %s: it waits no longer", err, time.Since(began))
		}
		if _, err := answers.get(t.Context(), "key"); !errors.Is(err, errNoAnswer) || time.Since(began) != 6*time.Second {
			t.Errorf("error %v after %s: the next one does not wait", err, time.Since(began))
		}
		if got, err := answers.get(t.Context(), "other"); !errors.Is(err, errNoAnswer) || q.asked.Load() != 2 {
			t.Errorf("got %q, error %v, asked %d times: another question is asked for itself", got, err, q.asked.Load())
		}
		if got, err := answers.get(t.Context(), "key"); got != "answer" || err != nil || time.Since(began) != 11*time.Second {
			t.Errorf("got %q, error %v after %s: it has come", got, err, time.Since(began))
		}
		<-time.After(time.Minute) // until the other has come, too
	})
}

func TestAPanicOfAQuestionIsAnError(t *testing.T) {
	t.Parallel()
	answers := newSharedAnswers(time.Minute, time.Minute, time.Minute, func(string) (string, error) { panic("bug") })
	if _, err := answers.get(t.Context(), "key"); err == nil {
		t.Error("there is none")
	}
}
