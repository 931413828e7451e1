// Command worker runs Caisson's built-in kinds of jobs: webhook.deliver, once endpoints are configured, and caisson.echo.
//
// For kinds of your own, write a program of three lines with package app.
package main
