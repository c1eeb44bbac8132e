// Package deploy holds that what people deploy with fits the program: the compose file,
// the Dockerfile and the manifest in the README. Containers are not started; the
// processes that they would hold are, with the same arguments and environment.
package deploy
