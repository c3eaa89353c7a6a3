from django.urls import path

from apps.loop import views

app_name = "loop"
urlpatterns = [
    path("", views.home, name="home"),
    path("loop/turns/", views.turn_start, name="turn_start"),
    path("loop/turns/<int:pk>/", views.turn, name="turn"),
    path("loop/turns/<int:pk>/cancel/", views.turn_cancel, name="turn_cancel"),
]
