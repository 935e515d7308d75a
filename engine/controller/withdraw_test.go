package controller

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

func newStoppable(run func(context.Context) error) *stoppable {
	return &stoppable{runnable: manager.RunnableFunc(run), done: make(chan struct{})}
}

func TestPartOfAControllerEndsBeforeItsManager(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	s := newStoppable(func(ctx context.Context) error {
		close(began)
		<-ctx.Done()
		return errors.New("its context has ended")
	})
	ended := make(chan error, 1)
	go func() { ended <- s.Start(t.Context()) }()
	<-began
	for range 2 { // a withdrawal that has failed is tried again
		if err := s.stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err != nil {
		t.Errorf("the manager would end with it: %v", err)
	}
}

func TestPartThatHasNotBegunNeverBegins(t *testing.T) {
	t.Parallel()
	s := newStoppable(func(context.Context) error { return errors.New("it has begun") })
	if err := s.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Errorf("a manager that is elected later starts it: %v", err)
	}
}

func TestPartThatFailsEndsTheManager(t *testing.T) {
	t.Parallel()
	want := errors.New("the cache did not sync")
	s := newStoppable(func(context.Context) error { return want })
	if err := s.Start(t.Context()); !errors.Is(err, want) {
		t.Errorf("the error is %v", err)
	}
}

func TestWaitForAPartThatDoesNotEndEnds(t *testing.T) {
	t.Parallel()
	began, release := make(chan struct{}), make(chan struct{})
	s := newStoppable(func(context.Context) error { close(began); <-release; return nil })
	ended := make(chan error, 1)
	go func() { ended <- s.Start(context.WithoutCancel(t.Context())) }()
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.stop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
