"""pi as a host: every decision for the TypeScript extension in `extensions/pi`, which decides nothing itself."""
