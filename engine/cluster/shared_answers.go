package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// errNoAnswer says that the API server has not answered in time.
var errNoAnswer = errors.New("the API server has not answered yet")

// sharedAnswers asks the API server for something once for all who need it, and remembers the answer for a time.
// One slow answer delays no caller for longer than patience: those who ask later get an error at once until it has come.
type sharedAnswers[K comparable, T any] struct {
	// ask asks the API server.
	ask func(K) (T, error)
	// fresh is how long an answer serves, and again how long an error does.
	fresh, again, patience time.Duration

	asking singleflight.Group
	mu     sync.Mutex
	known  map[K]sharedAnswer[T]
}

// A sharedAnswer is an answer, or an error with what is known all the same.
type sharedAnswer[T any] struct {
	value T
	err   error
	until time.Time
}

func newSharedAnswers[K comparable, T any](fresh, again, patience time.Duration, ask func(K) (T, error)) *sharedAnswers[K, T] {
	return &sharedAnswers[K, T]{ask: ask, fresh: fresh, again: again, patience: patience, known: map[K]sharedAnswer[T]{}}
}

// get returns the answer to a question.
func (s *sharedAnswers[K, T]) get(ctx context.Context, key K) (T, error) {
	if a, ok := s.recent(key); ok {
		return a.value, a.err
	}
	answered := s.asking.DoChan(fmt.Sprint(key), func() (any, error) {
		value, err := s.askGuarded(key)
		s.remember(key, value, err)
		return sharedAnswer[T]{value: value, err: err}, nil
	})
	var none T
	select {
	case <-ctx.Done():
		return none, ctx.Err()
	case <-time.After(s.patience):
		s.remember(key, none, errNoAnswer)
		return none, errNoAnswer
	case r := <-answered:
		a, _ := r.Val.(sharedAnswer[T])
		return a.value, a.err
	}
}

// askGuarded is ask. A panic of it would end the process, as no caller waits for its goroutine.
func (s *sharedAnswers[K, T]) askGuarded(key K) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading what the API server has answered: panic: %v", p)
		}
	}()
	return s.ask(key)
}

// recent returns an answer that serves still.
func (s *sharedAnswers[K, T]) recent(key K) (sharedAnswer[T], bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.known[key]
	return a, ok && time.Now().Before(a.until)
}

// remember remembers an answer. That it has not come in time says nothing against one that has come since.
func (s *sharedAnswers[K, T]) remember(key K, value T, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if was, ok := s.known[key]; errors.Is(err, errNoAnswer) && ok && was.err == nil && now.Before(was.until) {
		return
	}
	serves := s.fresh
	if err != nil {
		serves = s.again
	}
	s.known[key] = sharedAnswer[T]{value, err, now.Add(serves)}
}
