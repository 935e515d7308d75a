package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"operetta.dev/test/controlplane"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// namespace has all resources that are measured.
const namespace = "scale"

// waitTimeout is how long anything may take; whoever waits for longer waits for nothing.
const waitTimeout = 15 * time.Minute

// podsPerNode is how many resources are created for each simulated node, which has room for 1000 pods.
const podsPerNode = 400

// A plane is a control plane with the custom resources that are measured.
type plane struct {
	*controlplane.ControlPlane

	admin client.WithWatch
	dir   string
}

// startPlane starts a control plane for n resources, with the definitions of packages.
func startPlane(ctx context.Context, n int, dir, operetta string, packages []string) (*plane, error) {
	cp, err := controlplane.Start(ctx, controlplane.Options{
		Audit: true, Nodes: 2 + n/podsPerNode, Progress: io.Discard,
		// As in a real cluster: a shorter period would be a load that grows with the autoscalers.
		ExtraArgs: map[controlplane.Part][]string{controlplane.ControllerManager: {"--horizontal-pod-autoscaler-sync-period=15s"}},
	})
	if err != nil {
		return nil, err
	}
	p := &plane{ControlPlane: cp, dir: dir}
	if err := p.prepare(ctx, operetta, packages); err != nil {
		_ = cp.Stop()
		return nil, err
	}
	return p, nil
}

func (p *plane) prepare(ctx context.Context, operetta string, packages []string) error {
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig())
	if err != nil {
		return err
	}
	config.QPS = -1
	ctrllog.SetLogger(logr.Discard())
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	if p.admin, err = client.NewWithWatch(config, client.Options{Scheme: runtime.NewScheme()}); err != nil {
		return err
	}
	definitions, err := exec.CommandContext(ctx, operetta, append([]string{"crd"}, packages...)...).Output()
	if err != nil {
		return fmt.Errorf("definitions of packages: %w", err)
	}
	file := filepath.Join(p.dir, "definitions.yaml")
	if err := os.WriteFile(file, definitions, 0o600); err != nil {
		return err
	}
	if err := p.kubectl(ctx, "apply", "--server-side", "-f", file); err != nil {
		return err
	}
	if err := p.kubectl(ctx, "wait", "--for=condition=Established", "customresourcedefinition", "--all"); err != nil {
		return err
	}
	return p.kubectl(ctx, "create", "namespace", namespace)
}

func (p *plane) kubectl(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, p.Kubectl(), append([]string{"--kubeconfig", p.Kubeconfig(), "--cache-dir", filepath.Join(p.dir, "kubectl")}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", args[0], err, out)
	}
	return nil
}

// watch calls event for each object of a kind that exists or changes, until the context ends.
func (p *plane) watch(ctx context.Context, kind schema.GroupVersionKind, event func(watch.EventType, *unstructured.Unstructured)) error {
	w, err := p.listAndWatch(ctx, kind, event)
	if err != nil {
		return err
	}
	go func() {
		for ctx.Err() == nil {
			for e := range w.ResultChan() {
				if u, ok := e.Object.(*unstructured.Unstructured); ok {
					event(e.Type, u)
				}
			}
			w.Stop()
			// The API server ends watches after a while.
			for w, err = p.listAndWatch(ctx, kind, event); err != nil && ctx.Err() == nil; w, err = p.listAndWatch(ctx, kind, event) {
				<-time.After(pollEvery)
			}
		}
	}()
	return nil
}

func (p *plane) listAndWatch(ctx context.Context, kind schema.GroupVersionKind, event func(watch.EventType, *unstructured.Unstructured)) (watch.Interface, error) {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := p.admin.List(ctx, l, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	for i := range l.Items {
		event(watch.Modified, &l.Items[i])
	}
	return p.admin.Watch(ctx, l, client.InNamespace(namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: l.GetResourceVersion()}})
}

// An expectation waits until enough objects of a kind are as they should be.
type expectation struct {
	want int
	met  chan struct{}
	what string

	mu   sync.Mutex
	good map[string]bool
	seen int
	stop context.CancelFunc
}

// expect starts to watch a kind for as many objects as wanted for which good is true.
func (p *plane) expect(ctx context.Context, kind schema.GroupVersionKind, want int, good func(*unstructured.Unstructured) bool) (*expectation, error) {
	ctx, stop := context.WithCancel(ctx)
	e := &expectation{want: want, met: make(chan struct{}), what: fmt.Sprintf("%d × %s", want, kind.Kind), good: map[string]bool{}, stop: stop}
	err := p.watch(ctx, kind, func(event watch.EventType, u *unstructured.Unstructured) {
		e.note(u.GetName(), event != watch.Deleted && good(u))
	})
	if err != nil {
		stop()
		return nil, err
	}
	return e, nil
}

// note notes whether an object is good.
func (e *expectation) note(name string, good bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if good {
		e.good[name] = true
	} else {
		delete(e.good, name)
	}
	e.seen = len(e.good)
	if e.seen == e.want {
		select {
		case <-e.met:
		default:
			close(e.met)
		}
	}
}

// wait waits until the expectation is met, and shows how many objects are good.
func (e *expectation) wait(ctx context.Context, p *process, show func(string)) error {
	defer e.stop()
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	for {
		select {
		case <-e.met:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %d are there: %w", e.what, e.count(), context.Cause(ctx))
		case <-p.Ended:
			return fmt.Errorf("waiting for %s: %s has ended:\n%s", e.what, "the controller", p.Log.Tail(20))
		case <-time.After(pollEvery):
			show(fmt.Sprintf("%d of %d", e.count(), e.want))
		}
	}
}

func (e *expectation) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen
}

// removeAll deletes all resources of a kind, and waits until they and their objects are gone.
func (p *plane) removeAll(ctx context.Context, kind schema.GroupVersionKind, owned schema.GroupVersionKind) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	if err := p.admin.DeleteAllOf(ctx, u, client.InNamespace(namespace), client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		return err
	}
	for {
		l := &metav1.PartialObjectMetadataList{}
		l.SetGroupVersionKind(owned.GroupVersion().WithKind(owned.Kind + "List"))
		if err := p.admin.List(ctx, l, client.InNamespace(namespace)); err != nil {
			return err
		}
		left := 0
		for _, o := range l.Items {
			if metav1.GetControllerOf(&o) != nil {
				left++
			}
		}
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollEvery):
		}
	}
}

// isReady reports whether a custom resource is Ready for its generation.
func isReady(u *unstructured.Unstructured) bool {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range list {
		if m, _ := c.(map[string]any); m["type"] == "Ready" {
			return m["status"] == string(metav1.ConditionTrue) && m["observedGeneration"] == u.GetGeneration()
		}
	}
	return false
}
