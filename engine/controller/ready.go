package controller

import (
	"errors"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// synced is ready once the caches are: before that the engine would act on half
// of the truth.
func synced(c cache.Cache) healthz.Checker {
	return func(req *http.Request) error {
		if !c.WaitForCacheSync(req.Context()) {
			return errors.New("the caches are not synced yet")
		}
		return nil
	}
}
