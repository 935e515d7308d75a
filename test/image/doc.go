// Package image holds the tests of the container image and of the manifest that runs it.
// Nothing here needs a container engine: the Dockerfile is read, its build command is run
// on the files that .dockerignore lets through, and the binary is started the way the
// image starts it.
package image
