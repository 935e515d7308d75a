package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"operetta.dev/engine/crd"
)

// A standby is what a process that does not lead has postponed: it writes nothing, so the
// CustomResourceDefinitions of its packages wait until it leads. Its zero value does not lead.
type standby struct {
	mu        sync.Mutex
	leads     bool
	postponed map[string]*apiextensionsv1.CustomResourceDefinition
}

// postpone keeps a definition until the process leads. It returns false if it leads already.
func (s *standby) postpone(crd *apiextensionsv1.CustomResourceDefinition) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leads {
		return false
	}
	if s.postponed == nil {
		s.postponed = map[string]*apiextensionsv1.CustomResourceDefinition{}
	}
	s.postponed[crd.Name] = crd
	return true
}

// lead notes that the process leads, and returns what was postponed.
func (s *standby) lead() map[string]*apiextensionsv1.CustomResourceDefinition {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leads = true
	return s.postponed
}

// installDefinition installs the CustomResourceDefinition of a package, unless somebody else does. A
// process that stands by waits for that of the leader, and installs its own when it leads.
func (o *operator) installDefinition(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	switch {
	case o.flags.crds != crdsApply:
		return nil
	case !o.flags.options.Shard.IsPrimary():
		return o.awaitDefinition(ctx, crd)
	case !o.flags.options.LeaderElection || !o.standby.postpone(crd):
		return o.install(ctx, crd)
	}
	return o.awaitDefinition(ctx, crd)
}

// install installs the CustomResourceDefinition of a package, with the versions that this operator converts.
func (o *operator) install(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition) error {
	if by := o.flags.options.ConversionWebhook(); by != nil {
		definition = crd.WithConversion(definition, *by)
	}
	if unserved := crd.UnservedVersions(definition); len(unserved) > 0 {
		o.log.Info("versions are not served, because this operator serves no webhook that would convert them", "definition", definition.Name, "versions", unserved, "served", crd.StorageVersion(definition))
	}
	return installCRD(ctx, o.config, o.log, o.flags.options.Namespaces, definition)
}

// awaitDefinition waits until a definition is established, which the leader has installed, or this process when it
// came to lead. A shard that waits for another one also waits for the fields that its package has: what it writes
// there would be dropped. The process counts as ready meanwhile, because a rolling update stops the leader, or
// replaces the other shard, only once this process is ready.
func (o *operator) awaitDefinition(ctx context.Context, wanted *apiextensionsv1.CustomResourceDefinition) error {
	client, err := apiextensions.NewForConfig(o.config)
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	tick := time.NewTicker(standbyPoll)
	defer tick.Stop()
	leads, follows := o.manager.Elected(), !o.flags.options.Shard.IsPrimary()
	if follows {
		leads = nil // another shard installs it, whether this one leads or not
	}
	waits := func() {}
	defer func() { waits() }()
	for logged, first := "", true; ; {
		got, err := client.CustomResourceDefinitions().Get(ctx, wanted.Name, metav1.GetOptions{})
		switch {
		case err == nil && apihelpers.IsCRDConditionTrue(got, apiextensionsv1.Established):
			lacking := ""
			if follows {
				lacking = crd.MissingField(got, wanted)
			}
			if lacking == "" {
				return o.join(ctx, got, wanted)
			}
			logged = o.logMissingField(wanted, lacking, logged)
		case err != nil && !apierrors.IsNotFound(err) && !unreachable(err):
			return fmt.Errorf("waiting for the leader to install %s: %w", wanted.Name, err)
		}
		if first && !unreachable(err) { // whoever does not have to wait must not be ready for a moment
			first, waits = false, o.countWaiting()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-leads:
			return o.install(ctx, wanted)
		case <-tick.C:
		}
	}
}

// join waits until a definition is served that another process has installed. It errors as install would if resources lose fields by
// the one of this process, which is installed when it comes to lead.
func (o *operator) join(ctx context.Context, present, wanted *apiextensionsv1.CustomResourceDefinition) error {
	if !o.flags.options.Shard.IsPrimary() {
		return waitServed(ctx, o.config, wanted) // it never installs one
	}
	fields := fieldCheck{o.config, o.flags.options.Namespaces, o.log}
	err := retryOutage(ctx, o.config, o.log, func() error { return fields.check(ctx, present, wanted) })
	if err != nil {
		return fmt.Errorf("joining %s: %w", wanted.Name, err)
	}
	return waitServed(ctx, o.config, wanted)
}

// logMissingField logs which field a definition lacks, unless that was logged last, and returns it.
func (o *operator) logMissingField(wanted *apiextensionsv1.CustomResourceDefinition, lacking, logged string) string {
	if lacking != logged {
		o.log.Info("the package is served once shard 0 has installed its definition", "definition", wanted.Name, "lacking", lacking)
	}
	return lacking
}

// countWaiting notes that the process waits for a definition that another one installs, until the function is called that it returns.
func (o *operator) countWaiting() (end func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting++
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.waiting--
	}
}

// installPending installs what was postponed, once the process leads.
func (o *operator) installPending(ctx context.Context) error {
	if !o.flags.options.LeaderElection || !o.flags.options.Shard.IsPrimary() {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-o.manager.Elected():
	}
	postponed := o.standby.lead()
	if o.flags.crds != crdsApply {
		return nil
	}
	return o.installAll(ctx, postponed, o.install)
}

// installAll installs definitions. One for which it lacks a permission is tried again, and keeps no other.
func (o *operator) installAll(ctx context.Context, postponed map[string]*apiextensionsv1.CustomResourceDefinition, install func(context.Context, *apiextensionsv1.CustomResourceDefinition) error) error {
	for len(postponed) > 0 {
		refused := map[string]*apiextensionsv1.CustomResourceDefinition{}
		for name, crd := range postponed {
			err := install(ctx, crd)
			if ctx.Err() != nil {
				return nil //nolint:nilerr // the process ends
			}
			switch {
			case apierrors.IsForbidden(err):
				o.refuse(name, err)
				refused[name] = crd
				continue
			case isPackageFault(err):
				o.log.Error(err, "the definition of a package is rejected; the one in the cluster stays")
			case err != nil:
				return err
			}
			o.allow(name)
		}
		if postponed = refused; len(refused) > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(refusedRetry):
			}
		}
	}
	return nil
}
