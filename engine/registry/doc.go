// Package registry fetches CUE modules from OCI registries, and pushes them there. It speaks to registries as
// the cue command does, by the packages of CUE: what one of them pushes the other fetches.
//
//	client := registry.New(registry.Options{})
//	files, err := client.Module("example.com/lib@v0", "v0.1.2")    a dependency, by CUE_REGISTRY, through CUE's cache
//	artifact, err := client.Fetch(ctx, source)                     what a reference names, checked against its digest
//
// A registry is not trusted: each answer is bounded in time and size, and checked against the digest under which
// it was asked for. Errors say which registry and what kind of failure; they quote neither addresses nor what a
// registry has answered, because both can contain credentials.
package registry
