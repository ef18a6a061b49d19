// Sets the remembered theme before the first paint: a classic script, since modules run too late for that.
const rememberedTheme = localStorage.getItem("muster-theme");
if (rememberedTheme) document.documentElement.dataset.theme = rememberedTheme;
