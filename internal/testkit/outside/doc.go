// Package outside builds and runs a module that has nothing of Caisson but its public packages.
package outside
